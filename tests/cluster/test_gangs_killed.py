# SPDX-License-Identifier: Apache-2.0
"""The operator killed at every step of a gang's life: nothing is made twice, nothing is left behind."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.support.api_proxy import ApiProxy, Call
from tests.cluster.support.births import Births
from tests.cluster.support.forked_operator import ForkedOperator
from tests.cluster.support.gangs import (
    COSCHEDULING,
    MEMBERS,
    VOLCANO,
    gang_job,
    group_of,
    serve,
    wait_until_gone,
)
from tests.cluster.support.jobs import phase_is
from tests.cluster.support.killing import KilledAtEachStep
from tests.cluster.support.kubelet import Kubelet
from tools import binaries
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api
from tools.programs import CONTROL_PLANE

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600
"""Some thirty starts of an operator lie in between."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A control plane with PodGroups of others, and nobody who binds pods."""
    try:
        programs = binaries.find(CONTROL_PLANE)
    except binaries.BinariesError as error:
        pytest.skip(f"no Kubernetes programs: {str(error).splitlines()[0]}")
    with ControlPlane(programs) as running:
        running.kubectl("apply", "-f", str(ROOT / "crds"))
        Api(running.kubeconfig).wait_established()
        for definition in (VOLCANO, COSCHEDULING):
            serve(running, definition.read_text())
        yield running


@pytest.fixture(scope="module")
def api(cluster: ControlPlane) -> Api:
    return Api(cluster.kubeconfig)


@pytest.fixture
def killed(proxy: ApiProxy, namespace: str, tmp_path: Path) -> Iterator[ForkedOperator]:
    """The operator, which the test starts."""
    process = ForkedOperator(proxy.kubeconfig, namespace, tmp_path / "operator.log", resync_seconds=5)
    yield process
    proxy.rule = lambda call: None
    process.close()
    print(process.log.read_text())


@pytest.fixture
def births(api: Api, namespace: str) -> Iterator[Births]:
    watcher = Births(api, namespace)
    yield watcher
    watcher.doubled()


def of_the_gang(call: Call) -> bool:
    """The PodGroup, and the pods as they are made."""
    return call.resource == "podgroups" or (call.method, call.resource) == ("POST", "pods")


def every_change(call: Call) -> bool:
    """All that it does, but for telling people of it."""
    return call.resource != "events"


def running(api: Api, namespace: str, attempt: int) -> None:
    """Wait until the job's two tasks run in this attempt."""
    names = {f"digits-{task}-{attempt}" for task in ("chief-0", "worker-0")}
    api.wait("pods", namespace, lambda pods: set(pods) == names, timeout=PATIENCE)
    api.wait_for("dtjobs", namespace, "digits", phase_is("Running"), timeout=PATIENCE)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("provider", "wanted"),
    [
        pytest.param("Volcano", of_the_gang, id="Volcano"),
        *(
            pytest.param(provider, every_change, id=f"{provider}, every change", marks=pytest.mark.slow)
            for provider in ("Volcano", "Coscheduling")
        ),
    ],
)
def test_an_operator_killed_at_every_step_of_a_gang_makes_each_object_once(
    provider: str,
    wanted: Callable[[Call], bool],
    proxy: ApiProxy,
    killed: ForkedOperator,
    api: Api,
    namespace: str,
    auto_kubelet: Kubelet,
    births: Births,
) -> None:
    """A gang begins, is let go as its job is suspended, begins anew, and goes with the job's end."""
    kills = KilledAtEachStep(proxy, killed, wanted)
    killed.start()
    api.create("dtjobs", namespace, gang_job(namespace, provider, workers=1))
    running(api, namespace, 0)
    first = group_of(api, namespace, provider)
    pods = api.list("pods", namespace)
    assert first is not None
    assert len(pods) == 2
    assert all(MEMBERS[provider](pod) for pod in pods)
    assert first["metadata"]["creationTimestamp"] <= min(pod["metadata"]["creationTimestamp"] for pod in pods)

    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
    api.wait_for("dtjobs", namespace, "digits", phase_is("Suspended"), timeout=PATIENCE)
    wait_until_gone(api, namespace, provider, timeout=PATIENCE)
    api.wait("pods", namespace, lambda pods: not pods, timeout=PATIENCE)
    api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": False}})
    running(api, namespace, 1)
    second = group_of(api, namespace, provider)
    assert second is not None
    assert second["metadata"]["uid"] != first["metadata"]["uid"]

    auto_kubelet.succeed("digits-chief-0-1")
    api.wait_for("dtjobs", namespace, "digits", phase_is("Succeeded"), timeout=PATIENCE)
    wait_until_gone(api, namespace, provider, timeout=PATIENCE)
    assert births.doubled() == []
    assert api.get("dtjobs", namespace, "digits")["status"]["restarts"]["total"] == 0
    deleted = {step[3] for step, _ in kills.killed if step[:2] == ("DELETE", "podgroups")}
    assert deleted == {first["metadata"]["uid"], second["metadata"]["uid"]}
    for when in ("before", "after"):
        assert {("POST", "podgroups"), ("POST", "pods"), ("DELETE", "podgroups")} <= kills.steps(when)
