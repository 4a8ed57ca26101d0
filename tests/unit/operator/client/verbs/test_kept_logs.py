# SPDX-License-Identifier: Apache-2.0
"""`dtjob logs --attempt`: pods that are there print their logs. Of pods that are gone, what is kept is read."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused
from dtjob.client.verbs import kept_logs
from dtjob.client.verbs.fetch import PROGRAM
from dtjob.client.verbs.kept_logs import logs_of_attempt
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, pod, stamped, stored

FILES = {
    "chief-0.0.u.log": [
        "chief-0.0 | epoch 1",
        "chief-0.0 | 1/2\r2/2 | KeyError",
        "worker-1.0 | first",
        "worker-1.0 | early",
    ],
    "chief-0.1.u.log": ["chief-0.1 | on", "worker-1.0 | late"],
    "chief-0.3.another.log": ["chief-0.3 | of another job"],
    "evaluator-0.0.u.log": ["evaluator-0.0 | step 10"],
}


@pytest.fixture
def kept(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The helper pods that are made. They read the files of a local directory. Of chief-0 and worker-1 a second pod is
    there, of worker-0 the first, of the evaluator none."""
    made = list[str]()
    pods = [pod("chief-0", 1), pod("worker-0", 0), pod("worker-1", 1)]
    server.answer(f"GET {PODS}", {"items": pods, "metadata": {"resourceVersion": "1"}})
    for one in pods:
        name = one["metadata"]["name"]
        server.answer(f"GET {PODS}/{name}/log", stamped((1, f"of {name}")))
    (tmp_path / "logs").mkdir()
    for name, lines in FILES.items():
        (tmp_path / "logs" / name).write_text("".join(f"{line}\n" for line in lines))

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


def test_kept_lines_of_pods_that_are_gone_follow_the_logs_of_those_that_are_there(
    kept: list[str], cluster: Cluster
) -> None:
    """The newest of what is kept: worker-1 printed more when the chief had another pod."""
    chief = ["chief-0 | epoch 1", "chief-0 | 1/2\r2/2 | KeyError"]
    assert found(cluster, 0) == ["worker-0 | of digits-worker-0-0", *chief, "worker-1 | late"]
    assert found(cluster, 0, "chief", tail=1) == chief[1:]
    assert found(cluster, 0, "worker-1") == ["worker-1 | late"]


def test_the_evaluators_own_file_is_read(kept: list[str], cluster: Cluster, server: ApiServer) -> None:
    server.answer(f"GET {JOBS}/digits", stored(replicaSpecs={"chief": {}, "evaluator": {}}))
    assert found(cluster, 0, "evaluator") == ["evaluator-0 | step 10"]


def test_no_helper_pod_is_made_for_pods_that_are_there_or_never_were(kept: list[str], cluster: Cluster) -> None:
    assert found(cluster, 1) == ["chief-0.1 | of digits-chief-0-1", "worker-1.1 | of digits-worker-1-1"]
    assert found(cluster, 0, "worker-0") == ["worker-0 | of digits-worker-0-0"]
    assert found(cluster, 3) == []
    assert kept == []


def test_a_log_that_is_not_kept_is_refused(kept: list[str], cluster: Cluster, server: ApiServer) -> None:
    server.answer(f"GET {PODS}", {"items": [], "metadata": {"resourceVersion": "1"}})
    with pytest.raises(Refused, match="no log of attempt 3 at chief-0, worker-0, worker-1 is kept in"):
        found(cluster, 3)


def test_logs_of_data_workers_are_not_kept(kept: list[str], cluster: Cluster, server: ApiServer) -> None:
    server.answer(f"GET {JOBS}/digits", stored(replicaSpecs={"chief": {}, "data": {"replicas": 2}}))
    server.answer(f"GET {PODS}", {"items": [pod("chief-0", 0), pod("data-0", 1)], "metadata": {"resourceVersion": "1"}})
    server.answer(f"GET {PODS}/digits-chief-0-0/log", stamped((1, "of the chief")))
    server.answer(f"GET {PODS}/digits-data-0-1/log", stamped((1, "of data")))
    with pytest.raises(Refused, match="no pod of attempt 0 at data-0 is there, and logs of data workers are not kept"):
        found(cluster, 0, "data-0")
    assert found(cluster, 1, "data-0") == ["data-0.1 | of data"]
    assert found(cluster, 0) == ["chief-0 | of the chief"]
    assert kept == []
