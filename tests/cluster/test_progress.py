# SPDX-License-Identifier: Apache-2.0
"""Steps and checkpoints reach the job's status from a supervisor's own status server."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.supervisor.ports import status_server
from tests.cluster.conftest import Kubectl
from tests.cluster.support.chart import wait_until
from tests.cluster.support.command_line import command_line
from tests.cluster.support.jobs import job, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api


class ServedStatus:
    """The trainer's status server on loopback, in a thread, with a status that the test sets."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}
        self._answered = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        server = status_server(self._answer, {})
        self.port = asyncio.run_coroutine_threadsafe(server.start("127.0.0.1", 0), self._loop).result()

    def _answer(self) -> dict[str, Any]:
        self._answered += 1
        return self.status

    def wait_taken(self) -> None:
        """Return once the operator has taken in the status as it is now: with its next question but one."""
        enough = self._answered + 2
        wait_until(lambda: self._answered >= enough, "the operator asks for the status twice")

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end_answers(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _end_answers(self) -> None:
        """Leave none half given: whoever collects it later is told so, in another test."""
        answers = asyncio.all_tasks() - {asyncio.current_task()}
        for one in answers:
            one.cancel()
        await asyncio.gather(*answers, return_exceptions=True)


@pytest.fixture
def served() -> Iterator[ServedStatus]:
    server = ServedStatus()
    yield server
    server.close()


def test_step_and_checkpoint_come_from_the_chief(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet, kubectl: Kubectl, served: ServedStatus
) -> None:
    api.create("dtjobs", namespace, job(strategy="Mirrored", network={"statusPort": served.port}))
    uid = api.get("dtjobs", namespace, "digits")["metadata"]["uid"]
    checkpoint = {"step": 100, "time": "2026-11-21T10:00:02Z"}
    served.status = {"jobUid": uid, "step": 120, "totalSteps": 480, "etaSeconds": 90, "checkpoint": checkpoint}
    kubelet.run("digits-chief-0-0", address="127.0.0.1")
    found = api.wait_for("dtjobs", namespace, "digits", lambda f: f and "checkpoint" in f.get("status", {}))
    assert found is not None
    assert found["status"]["checkpoint"] == checkpoint
    assert found["status"]["progress"]["step"] == 120
    wide = kubectl("get", "dtjobs", "-o", "wide").stdout.splitlines()[1].split()
    assert {"120", "25", "90", "100"} <= set(wide)


@pytest.mark.parametrize(
    ("bad", "kept"),
    [
        (
            {"metrics": {"confusion": [[0.5] * 60] * 60, "accuracy": 0.5}},
            {"metrics": [{"name": "accuracy", "value": "0.5"}]},
        ),
        ({"metrics": {f"{number}-{'m' * 100}": 0.5 for number in range(400)}}, {}),
        ({"totalSteps": "many", "epoch": 10**30, "model": ["a"]}, {}),
        ({"checkpoint": {"step": 5, "time": "yesterday"}}, {}),
        ({"checkpoint": {"step": 5.5, "time": "2026-11-21T10:00:02Z"}}, {}),
    ],
    ids=["a confusion matrix", "400 metrics", "other types", "no time", "no whole step"],
)
def test_an_odd_report_does_not_stop_the_restart_of_a_job(
    shared_operator: OperatorProcess,
    api: Api,
    namespace: str,
    kubelet: Kubelet,
    served: ServedStatus,
    bad: dict[str, Any],
    kept: dict[str, Any],
) -> None:
    """The status is written before anything is done: were it refused, a failed pod would never be replaced."""
    policy = {"backoff": {"initialSeconds": 0, "maxSeconds": 0}}
    spec: dict[str, Any] = {"network": {"statusPort": served.port}, "failurePolicy": policy}
    api.create("dtjobs", namespace, job(strategy="Mirrored", **spec))
    uid = api.get("dtjobs", namespace, "digits")["metadata"]["uid"]
    served.status = {"jobUid": uid, "step": 120, **bad}
    kubelet.run("digits-chief-0-0", address="127.0.0.1")
    served.wait_taken()
    kubelet.exit("digits-chief-0-0", 1)
    wait_pods(api, namespace, "digits-chief-0-1")
    progress = api.get("dtjobs", namespace, "digits")["status"]["progress"]
    assert progress["step"] == 120
    assert kept.items() <= progress.items()
    assert len(progress.get("metrics", {})) <= 64


def test_the_story_of_a_job_is_told_after_its_pods_are_gone(
    shared_operator: OperatorProcess,
    cluster: ControlPlane,
    api: Api,
    namespace: str,
    kubelet: Kubelet,
    served: ServedStatus,
    tmp_path: Path,
) -> None:
    api.create("dtjobs", namespace, job(strategy="Mirrored", network={"statusPort": served.port}, cleanPodPolicy="All"))
    uid = api.get("dtjobs", namespace, "digits")["metadata"]["uid"]

    def says(step: int, attempt: int, restored: int) -> None:
        checkpoint = {"step": 100, "time": "2026-11-21T10:00:02Z"}
        report = {"step": step, "attempt": attempt, "restoredStep": restored, "checkpoint": checkpoint}
        served.status = {"jobUid": uid, "state": "training", **report}

    def told(**known: Any) -> None:
        def holds(found: Any) -> bool:
            incidents = (found or {}).get("status", {}).get("incidents", [{}])
            return known.items() <= incidents[-1].items()

        assert api.wait_for("dtjobs", namespace, "digits", holds) is not None, known

    says(120, 0, 0)
    kubelet.run("digits-chief-0-0", address="127.0.0.1")
    api.wait_for("dtjobs", namespace, "digits", lambda found: found and "progress" in found.get("status", {}))
    kubelet.evict("digits-chief-0-0")
    told(number=1, task="chief-0", reason="Disruption", fromStep=120)
    says(100, 1, 100)
    kubelet.run("digits-chief-0-1", address="127.0.0.1")
    told(number=1, fromStep=120, toStep=100)
    says(121, 1, 100)
    api.wait_for(
        "dtjobs", namespace, "digits", lambda found: found and "secondsLost" in found["status"]["incidents"][0]
    )
    kubelet.succeed("digits-chief-0-1")
    api.wait_for("dtjobs", namespace, "digits", lambda found: found and found["status"]["phase"] == "Succeeded")
    api.wait_for("pods", namespace, "digits-chief-0-1", lambda pod: pod is None)
    said = command_line(cluster, api, namespace, tmp_path)("status", "digits").stdout
    story = [" ".join(line.split()[2:]) for line in said.partition("story (UTC)")[2].splitlines()]
    assert (story[1], story[-1]) == ("started", "Succeeded (Completed)")
    assert story[2].startswith("Disruption: chief-0 was disrupted (TerminationByKubelet); step 120 -> 100; ")
