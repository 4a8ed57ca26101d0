"""What TFJob is known to do wrong, and dtjob must do better: what other files' tests do not show already.

The table in docs/tfjob.md names the test for each of TFJob's faults.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import yaml

from dtjob.kube.client import Kube
from dtjob.objects.manifest import Manifest
from tests.cluster.conftest import Kubectl
from tests.cluster.support.in_process import operator_here
from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.unit.failure_rules_page import blocks
from tests.unit.tfjob_page import dtjobs
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, Object

AT_ONCE = {"initialSeconds": 0, "maxSeconds": 0}
MANY = 60


def many(name: str) -> Object:
    """A job with MANY workers."""
    return job(name, replicas={"worker": {"count": MANY}})


@pytest.mark.parametrize("name", dtjobs())
def test_the_pages_dtjobs_are_taken(api: Api, namespace: str, name: str) -> None:
    assert api.create("dtjobs", namespace, dtjobs()[name][0], dryRun="All")["metadata"]["name"] == name


def test_restarts_by_exit_code_are_limited(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    """Under TFJob's ExitCode policy as dtjob rules, each restart with a pod of its own: `maxRestarts` holds."""
    rules = blocks()["tfjob-exit-code"]["rules"]
    policy = {"maxRestarts": 2, "backoff": AT_ONCE, "rules": rules}
    api.create("dtjobs", namespace, job(strategy="Mirrored", failurePolicy=policy))
    for attempt in range(3):
        kubelet.exit(f"digits-chief-0-{attempt}", 137)
    status = wait_phase(api, namespace, "Failed")["status"]
    assert (status["reason"], status["restarts"]["total"]) == ("MaxRestartsExceeded", 2)
    assert "failurePolicy.maxRestarts (2)" in status["message"]


@pytest.mark.parametrize("how", ["drain", "preempt", "delete"])
def test_a_running_pod_that_is_taken_away_is_no_failure(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet, how: str
) -> None:
    """Of a job that no failure is forgiven."""
    api.create("dtjobs", namespace, job(failurePolicy={"maxRestarts": 0}))
    wait_phase(api, namespace, "Running")
    if how == "delete":
        api.delete("pods", namespace, "digits-worker-1-0")
    else:
        getattr(auto_kubelet, how)("digits-worker-1-0")
    wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-1")
    status = wait_phase(api, namespace, "Running")["status"]
    assert (status["restarts"]["total"], status["incident"]["charged"]) == (1, 0)


async def test_names_come_before_pods_and_pods_side_by_side(
    cluster: ControlPlane, api: Api, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Service that gives pods their names, ready or not, is there before the first pod is asked for."""
    create, under_way = Kube.create, 0
    calls: list[str] = []
    at_once: list[int] = []

    async def counted(self: Kube, manifest: Manifest) -> Manifest:
        nonlocal under_way
        under_way += 1
        at_once.append(under_way)
        calls.append(f"{manifest['kind']} asked for")
        try:
            return await create(self, manifest)
        finally:
            under_way -= 1
            calls.append(f"{manifest['kind']} there")

    def life() -> Object:
        api.create("dtjobs", namespace, many("digits"))
        api.wait("pods", namespace, lambda pods: len(pods) == MANY)
        return api.get("services", namespace, "digits")

    monkeypatch.setattr(Kube, "create", counted)
    async with operator_here(cluster, namespace):
        service = await asyncio.to_thread(life)
    assert calls.index("Service there") < calls.index("Pod asked for")
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert max(at_once) >= 16  # calls that wait for their answers together


async def test_a_big_job_delays_no_other_one(
    cluster: ControlPlane, api: Api, namespace: str, auto_kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server answers 29 creates of the big one only when the small one runs, which comes after it."""
    create, begun, small_runs = Kube.create, 0, asyncio.Event()

    async def slow(self: Kube, manifest: Manifest) -> Manifest:
        nonlocal begun
        if manifest["kind"] == "Pod" and manifest["metadata"]["name"].startswith("big-"):
            begun += 1
            if begun > MANY // 2 + 1:
                await small_runs.wait()
        return await create(self, manifest)

    def life() -> int:
        api.create("dtjobs", namespace, many("big"))
        api.wait("pods", namespace, lambda pods: len(pods) > MANY // 2)
        api.create("dtjobs", namespace, job("small"))
        wait_phase(api, namespace, "Running", "small")
        return sum(pod["metadata"]["name"].startswith("big-") for pod in api.list("pods", namespace))

    monkeypatch.setattr(Kube, "create", slow)
    async with operator_here(cluster, namespace):
        assert await asyncio.to_thread(life) < MANY
        small_runs.set()
        await asyncio.to_thread(wait_phase, api, namespace, "Running", "big")


def test_a_ps_that_failed_is_replaced(
    shared_operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job(strategy="ParameterServer"))
    wait_phase(api, namespace, "Running")
    auto_kubelet.exit("digits-ps-0-0", 137, "OOMKilled")
    api.wait_for("pods", namespace, "digits-ps-0-1", lambda pod: pod is not None)
    status = wait_phase(api, namespace, "Running")["status"]
    assert status["restarts"] == {"total": 1, "causes": {"OOMKilled": 1}}


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        (job("a" * 60), ("metadata.name", "use a shorter name")),
        (job(replicas={"chief": {}, "master": {}}), ('unknown field "spec.replicas.master"',)),
        (job(replicas={"Worker": {"count": 2}}), ('unknown field "spec.replicas.Worker"',)),
    ],
    ids=["a name that is too long", "a role that nobody knows", "a role in capitals"],
)
def test_what_would_never_run_is_refused_at_apply(
    kubectl: Kubectl, api: Api, namespace: str, manifest: Object, says: tuple[str, ...]
) -> None:
    done = kubectl("apply", "-f", "-", stdin=yaml.safe_dump(manifest), check=False)
    assert done.returncode == 1
    for part in says:
        assert part in done.stderr
    assert api.list("dtjobs", namespace) == []


def test_step_checkpoint_cause_and_last_lines_stay_when_all_pods_have_gone(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    manifest = job(strategy="Mirrored", runPolicy={"cleanPods": "All"}, failurePolicy={"backoff": AT_ONCE})
    api.create("dtjobs", namespace, manifest)
    kubelet.exit("digits-chief-0-0", 3, message="step 41\nValueError: no such column")
    checkpoint = {"step": 460, "time": "2026-11-21T10:00:02Z"}
    last: dict[str, Any] = {"step": 460, "totalSteps": 460, "loss": 0.05, "checkpoint": checkpoint}
    kubelet.exit("digits-chief-0-1", 0, message=json.dumps(last))
    api.wait_for("dtjobs", namespace, "digits", lambda found: found and found["status"]["phase"] == "Succeeded")
    api.wait("pods", namespace, lambda pods: not pods)
    status = api.get("dtjobs", namespace, "digits")["status"]
    assert (status["progress"]["step"], status["progress"]["loss"], status["checkpoint"]) == (460, 0.05, checkpoint)
    first = status["firstFailure"]
    assert (first["pod"], first["node"], first["exitCode"]) == ("digits-chief-0-0", "node-1", 3)
    assert first["message"] == "step 41\nValueError: no such column"
    assert status["restarts"] == {"total": 1, "causes": {"Error": 1}}
