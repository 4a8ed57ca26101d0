# SPDX-License-Identifier: Apache-2.0
"""The helper that plays the kubelet does to a real API server what a node does."""

from collections.abc import Callable

import pytest

from tests.cluster.support.kubelet import Kubelet
from tools.cluster.rest import Api, ApiError, Object


def pod(name: str, **spec: object) -> Object:
    containers = [{"name": name, "image": "any"} for name in ("tensorflow", "sidecar")]
    spec = {"restartPolicy": "Never", "containers": containers, "automountServiceAccountToken": False, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def start(api: Api, namespace: str) -> Callable[[str], Object]:
    return lambda name: api.create("pods", namespace, pod(name))


def condition(item: Object, kind: str) -> Object | None:
    return next((own for own in item["status"]["conditions"] if own["type"] == kind), None)


def training_state(item: Object) -> Object:
    found: Object = next(own["state"] for own in item["status"]["containerStatuses"] if own["name"] == "tensorflow")
    return found


def test_a_running_pod_is_ready_and_has_an_address(kubelet: Kubelet, start: Callable[[str], Object]) -> None:
    start("a")
    item = kubelet.run("a")
    assert item["status"]["phase"] == "Running"
    assert item["status"]["podIP"].startswith("10.244.")
    ready = condition(kubelet.unready("a"), "Ready")
    assert ready
    assert ready["status"] == "False"


def test_each_end_of_a_container_is_in_the_pods_status(kubelet: Kubelet, start: Callable[[str], Object]) -> None:
    for name in ("done", "wrong", "killed", "oom", "sidecar"):
        start(name)
    assert kubelet.succeed("done")["status"]["phase"] == "Succeeded"
    wrong = kubelet.exit("wrong", 3, message="Traceback: no such file")
    assert wrong["status"]["phase"] == "Failed"
    assert training_state(wrong)["terminated"]["message"] == "Traceback: no such file"
    assert training_state(kubelet.exit("killed", signal=9))["terminated"]["exitCode"] == 137
    assert training_state(kubelet.exit("oom", 137, "OOMKilled"))["terminated"]["reason"] == "OOMKilled"
    beside = kubelet.exit("sidecar", 1, others_run=True)
    assert beside["status"]["phase"] == "Running"
    assert training_state(beside)["terminated"]["exitCode"] == 1


def test_each_disruption_is_in_the_pods_status(
    kubelet: Kubelet, api: Api, namespace: str, start: Callable[[str], Object]
) -> None:
    for name in ("evicted", "rejected", "preempted", "drained", "stuck", "pulling"):
        start(name)
    evicted = kubelet.evict("evicted")
    assert condition(evicted, "DisruptionTarget")
    assert "containerStatuses" not in evicted["status"]
    assert kubelet.reject("rejected")["status"]["reason"] == "UnexpectedAdmissionError"
    assert condition(kubelet.unschedulable("stuck"), "PodScheduled")
    assert training_state(kubelet.wait("pulling"))["waiting"]["reason"] == "ImagePullBackOff"
    for name, act in (("preempted", kubelet.preempt), ("drained", kubelet.drain)):
        kubelet.run(name)
        kubelet.hang(name)
        act(name)
        item = api.get("pods", namespace, name)
        assert item["metadata"]["deletionTimestamp"]
        assert condition(item, "DisruptionTarget")


def test_a_deleted_pod_goes_and_one_on_a_lost_node_stays(
    kubelet: Kubelet, api: Api, namespace: str, start: Callable[[str], Object]
) -> None:
    for name in ("a", "b"):
        start(name)
        kubelet.run(name)
    kubelet.hang("b")
    for name in ("b", "a"):
        api.delete("pods", namespace, name)
    api.wait_for("pods", namespace, "a", lambda item: item is None)
    assert api.get("pods", namespace, "b")["metadata"]["deletionTimestamp"]
    kubelet.release()
    api.wait_for("pods", namespace, "b", lambda item: item is None)


def test_auto_runs_every_pod_also_over_an_outage(
    auto_kubelet: Kubelet, cluster: object, api: Api, namespace: str, start: Callable[[str], Object]
) -> None:
    from tools.cluster.control_plane import ControlPlane

    assert isinstance(cluster, ControlPlane)
    start("before")
    api.wait_for("pods", namespace, "before", lambda item: item and item["status"]["phase"] == "Running")
    cluster.stop_api()
    with pytest.raises(Api.UNREACHABLE):
        api.get("pods", namespace, "before")
    cluster.start_api()
    start("after")
    api.wait_for("pods", namespace, "after", lambda item: item and item["status"]["phase"] == "Running")


def test_auto_leaves_alone_what_has_ended_or_gone_by_the_time_it_looks(
    kubelet: Kubelet, api: Api, namespace: str, start: Callable[[str], Object]
) -> None:
    late = Kubelet(api, namespace, auto=True)
    ended, gone = start("ended"), start("gone")
    kubelet.exit("ended", 1)
    api.delete("pods", namespace, "gone", grace=0)
    for made in (ended, gone):
        late._look_at(made)
    assert api.get("pods", namespace, "ended")["status"]["phase"] == "Failed"


def test_an_error_in_a_helpers_thread_fails_the_waiting_test(
    api: Api, namespace: str, start: Callable[[str], Object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Object) -> None:
        raise ApiError(422, {"message": "not like this"})

    helper = Kubelet(api, namespace, auto=True)
    monkeypatch.setattr(helper, "_look_at", refuse)
    with helper:
        start("a")
        with pytest.raises(AssertionError, match="a helper has failed") as failure:
            api.wait_for("pods", namespace, "a", lambda item: item is None)
        with pytest.raises(ApiError, match="not like this"):
            helper.close()
        helper.errors.clear()
    assert isinstance(failure.value.__cause__, ApiError)
    assert api.wait_for("pods", namespace, "a", lambda item: item is not None)


def test_the_error_of_a_wait_without_success_shows_the_object(
    api: Api, namespace: str, start: Callable[[str], Object]
) -> None:
    start("a")
    with pytest.raises(AssertionError, match="Pending"):
        api.wait_for("pods", namespace, "a", lambda item: item is None, timeout=0.5)


def test_unknown_fields_are_refused(api: Api, namespace: str) -> None:
    with pytest.raises(ApiError, match="unknown field"):
        api.create("pods", namespace, pod("a", nonsense=1))
