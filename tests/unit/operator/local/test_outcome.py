# SPDX-License-Identifier: Apache-2.0
import signal
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.local import outcome, pod_status
from dtjob.objects import topology
from dtjob.objects.pod.pod import pod
from dtjob.plan.seen.children import Children
from dtjob.times import rfc3339
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, job, stored


def pods(a_job: Job | None = None, **codes: int):
    """A pod for each task of a job, running unless its code is named by role."""
    found = []
    for task in topology.tasks(a_job or job()):
        manifest = pod(a_job or job(), task, 0)
        code = codes.get(task.role.value)
        manifest["status"] = pod_status.running(NOW) if code is None else pod_status.ended(code, NOW, NOW, "")
        found.append(manifest)
    return found


def observed(found) -> Children:
    return Children(tuple(stored(manifest) for manifest in found))


def is_over(status: dict[str, Any], found=(), a_job=None) -> bool:
    return outcome.is_over(a_job or job(), status, observed(found), NOW)


def test_a_run_is_over_when_an_ended_jobs_last_process_is():
    assert not is_over({"phase": "Running"})
    assert not is_over({}, pods(chief=0, worker=0))
    assert not is_over({"phase": "Succeeded"}, pods(chief=0))
    assert is_over({"phase": "Succeeded"}, pods(chief=0, worker=0))
    assert is_over({"phase": "Failed"})


@pytest.mark.parametrize(
    ("code", "status", "over"),
    [
        (0, {}, True),
        (1, {}, False),
        (1, {"conditions": [builders.condition("EvaluationGivenUp")]}, True),
        (1, {"phase": "Failed"}, True),
    ],
)
def test_a_run_is_not_over_while_its_evaluator_gets_another_try(code: int, status: dict[str, Any], over: bool):
    with_evaluator = job("Mirrored", evaluator=True)
    done = [{"role": "chief", "attempt": 0, "indexes": "0"}]
    ended = {"phase": "Succeeded", "completionTime": rfc3339(NOW), **builders.remembered(finished=done)}
    found = pods(with_evaluator, chief=0, evaluator=code)
    assert is_over({**ended, **status}, found, with_evaluator) == over


def test_success_while_it_was_stopped_is_the_chiefs():
    stopped = observed(pods(chief=0, worker=143))
    status = outcome.success_while_stopped(job(), {"phase": "Running"}, stopped, NOW)
    assert status is not None
    assert (status["phase"], status["reason"]) == ("Succeeded", "Completed")


def test_a_run_whose_tasks_were_stopped_has_not_succeeded():
    for code in (143, -signal.SIGKILL, 1):
        stopped = observed(pods(chief=code, worker=code))
        assert (
            outcome.success_while_stopped(job(failurePolicy={"maxRestartsWithoutProgress": 0}), {}, stopped, NOW)
            is None
        )


def test_goodput_of_a_run_that_was_stopped_is_counted_to_its_end():
    """The status was written last when training had begun; the chief was asked last just before its end."""
    begun = {"until": rfc3339(NOW), "doing": "training", "reported": {"attempt": 0, "incarnation": 1}}
    written = {"phase": "Running", "goodput": {"seconds": {"starting": "2.4"}}, "internal": {"goodput": begun}}
    told = {"from": 0, "keptSteps": 407, "kept": 8.5, "redoneSteps": 0, "redone": 0, "saving": 0.5}
    found = pods(chief=143, worker=143)
    word = {"state": "training", "attempt": 0, "incarnation": 1, "step": 407, "spent": told}
    last_seen = replace(observed(found), reports={"chief-0": word})
    status = outcome.when_stopped(job(), written, last_seen, NOW + timedelta(seconds=10))
    assert status["phase"] == "Running"
    assert status["goodput"]["seconds"] == {"kept": "8.5", "saving": "0.5", "starting": "2.4", "unknown": "1"}
    assert (status["goodput"]["percentage"], status["goodput"]["steps"]["kept"]) == (74, 407)
    assert outcome.when_stopped(job(), {"phase": "Pending"}, observed(found), NOW) == {"phase": "Pending"}
