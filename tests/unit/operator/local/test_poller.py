# SPDX-License-Identifier: Apache-2.0
import json
from typing import Any

import pytest

from dtjob.local import poller
from dtjob.local.poller import Poller, is_of
from dtjob.local.processes.addresses import Addresses
from dtjob.objects import topology
from dtjob.objects.pod.pod import pod
from dtjob.status_client import NoStatus
from tests.unit.operator.builders import job

CHIEF = topology.tasks(job())[0]


def test_a_report_of_another_job_or_task_is_not_the_tasks():
    assert is_of({"jobUid": "u", "task": "chief-0"}, "u", "chief-0")
    assert not is_of({"jobUid": "other", "task": "chief-0"}, "u", "chief-0")
    assert not is_of({"jobUid": "u", "task": "worker-0"}, "u", "chief-0")
    assert not is_of({}, "u", "chief-0")


def give(monkeypatch: pytest.MonkeyPatch, answers: list[dict[str, Any] | None]) -> None:
    """Have `/status` answer so, one after the other; None is no answer."""

    async def read_status(host: str, port: int, **limits: float):
        answer = answers.pop(0)
        if answer is None:
            raise NoStatus("NoAnswer", "connected, but no answer")
        return answer

    monkeypatch.setattr(poller, "read_status", read_status)


async def test_reports_of_the_job_are_kept_and_passed_on(monkeypatch):
    answers = [{"jobUid": "u", "task": "chief-0", "step": 4}, None, {"jobUid": "v", "task": "chief-0", "step": 9}]
    give(monkeypatch, answers)
    told = []
    made = Poller("u", Addresses.choose(job()), lambda task, report: told.append((task, report["step"])))
    for _ in range(3):
        await made.poll([pod(job(), CHIEF, 0)])
    assert told == [("chief-0", 4)]
    assert made.reports["chief-0"]["step"] == 4


async def test_a_task_is_silent_only_if_its_attempt_answered_before(monkeypatch):
    """One that starts has not reported yet, and neither has a new attempt."""
    answers = [None, {"jobUid": "u", "task": "chief-0", "attempt": 0}, None, None]
    give(monkeypatch, answers)
    silent = []
    made = Poller("u", Addresses.choose(job()), lambda *_: None, lambda *told: silent.append(told))
    for attempt, known in ((0, 0), (0, 0), (0, 1), (1, 1)):
        manifest = pod(job(), CHIEF, attempt)
        manifest["metadata"]["uid"] = "uid-of-the-pod"
        await made.poll([manifest])
        assert len(silent) == known
    [(task, silence)] = silent
    assert (task, silence.pod_uid, silence.reason) == ("chief-0", "uid-of-the-pod", "NoAnswer")


def test_last_words_are_the_last_report():
    manifest = pod(job(), CHIEF, 0)
    last = {"task": "chief-0", "state": "finished", "step": 460}
    end = {"exitCode": 0, "message": json.dumps(last)}
    manifest["status"] = {"containerStatuses": [{"name": "tensorflow", "state": {"terminated": end}}]}
    made = Poller("u", Addresses.choose(job()), lambda *_: None)
    made.note_last_words(pod(job(), CHIEF, 0))
    assert made.reports == {}
    made.note_last_words(manifest)
    assert made.reports["chief-0"]["step"] == 460
