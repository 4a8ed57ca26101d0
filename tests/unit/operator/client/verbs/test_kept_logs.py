# SPDX-License-Identifier: Apache-2.0
"""`dtjob logs --attempt`: pods that are there print their logs. The kept log of a chief that is gone is read."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused
from dtjob.client.verbs import kept_logs
from dtjob.client.verbs.kept_logs import logs_of_attempt
from dtjob.client.verbs.sent import PROGRAM
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import PODS, pod, stamped, stored


@pytest.fixture
def kept(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The helper pods that are made. They read the files of a local directory, which has a log of attempt 0."""
    job, made = stored(), list[str]()
    pods = [pod("chief-0", 1), pod("worker-0", 0)]
    server.answer(f"GET {PODS}", {"items": pods, "metadata": {"resourceVersion": "1"}})
    for one in pods:
        name = one["metadata"]["name"]
        server.answer(f"GET {PODS}/{name}/log", stamped((1, f"of {name}")))
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / f"attempt-0.{job['metadata']['uid']}.log").write_text("epoch 1\nKeyError\n")
    (tmp_path / "logs" / "attempt-3.another.log").write_text("of another job\n")

    def ask(*_: object) -> Callable[[Sequence[str], Callable[[bytes], object]], None]:
        def answer(arguments: Sequence[str], sink: Callable[[bytes], object]) -> None:
            command = [sys.executable, "-c", PROGRAM, *arguments]
            sink(subprocess.run(command, capture_output=True, check=True).stdout)

        return answer

    def running(*_: object) -> contextlib.AbstractContextManager[str]:
        made.append("helper")
        return contextlib.nullcontext("helper")

    monkeypatch.setattr(kept_logs, "in_pod", ask)
    monkeypatch.setattr(kept_logs, "running", running)
    monkeypatch.setattr(kept_logs, "directory_of", lambda _: str(tmp_path))
    return made


def found(cluster: Cluster, attempt: int, task: str | None = None, tail: int | None = None) -> list[str]:
    return [f"{one.task} | {one.text}" for one in logs_of_attempt(cluster, "digits", attempt, task, tail)]


def test_the_log_of_a_chief_that_is_gone_follows_those_of_pods_that_are_there(
    kept: list[str], cluster: Cluster
) -> None:
    assert found(cluster, 0) == ["worker-0 | of digits-worker-0-0", "chief-0 | epoch 1", "chief-0 | KeyError"]
    assert found(cluster, 0, "chief", tail=1) == ["chief-0 | KeyError"]


def test_no_helper_pod_is_made_for_a_pod_that_is_there_or_another_task(kept: list[str], cluster: Cluster) -> None:
    assert found(cluster, 1) == ["chief-0.1 | of digits-chief-0-1"]
    assert found(cluster, 0, "worker") == ["worker-0 | of digits-worker-0-0"]
    assert kept == []


def test_a_log_that_is_not_kept_is_refused(kept: list[str], cluster: Cluster) -> None:
    with pytest.raises(Refused, match="no log of attempt 3 at chief-0 is kept in"):
        found(cluster, 3)
