# SPDX-License-Identifier: Apache-2.0
"""Steps and checkpoints reach the job's status from a supervisor's own status server."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dtjob_trainer.supervisor.server import StatusServer
from tests.cluster.conftest import Kubectl
from tests.cluster.support.chart import wait_until
from tests.cluster.support.jobs import job, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api


class ServedStatus:
    """The trainer's status server on loopback, in a thread, with a status that the test sets."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}
        self._answered = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        server = StatusServer(self._answer, {})
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
