# SPDX-License-Identifier: Apache-2.0
"""The pod that reads checkpoints is the chief's, without what trains."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dtjob.client.cluster import Cluster
from dtjob.client.errors import NotDone, Refused
from dtjob.client.verbs.helper_pod import directory_of, ended, helper_pod, running, typed
from tests.unit.operator.client.api_server import ApiServer, Fault
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, stored


def test_the_helper_pod_mounts_the_claim_with_the_chiefs_rights_and_takes_no_gpu() -> None:
    made = helper_pod(stored(), ["idle"], pods=[a_pod()])
    (container,) = made["spec"]["containers"]
    assert [one["name"] for one in made["spec"]["volumes"]] == ["checkpoints"]
    assert container["volumeMounts"] == [{"name": "checkpoints", "mountPath": "/checkpoints", "subPath": "x"}]
    assert container["env"] == [{"name": "A", "value": "1"}]
    assert (container["command"], container["image"]) == (["idle"], "registry.example/a:1")
    assert "nvidia.com/gpu" not in str(container)
    assert made["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert made["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert "node-1" in str(made["spec"]["affinity"])
    assert not [name for name in made["metadata"]["labels"] if name.startswith("training.dtjob.dev")]


def a_pod(task: str = "chief", attempt: int = 0, state: str = "running", **spec: Any) -> dict[str, Any]:
    """A pod of the job that serves, as it is stored."""
    names = {"role": task, "index": "0", "attempt": str(attempt), "serving": "true"}
    return {
        "metadata": {"name": "p", "labels": {f"training.dtjob.dev/{name}": value for name, value in names.items()}},
        "spec": {
            "nodeName": "node-1",
            "volumes": [{"name": "checkpoints"}],
            "containers": [{"name": "tensorflow", "env": [{"name": "A", "value": "1"}]}],
            **spec,
        },
        "status": {"containerStatuses": [{"name": "tensorflow", "state": {state: {}}}]},
    }


def test_the_helper_pod_has_what_the_operators_defaults_gave_the_newest_pod_of_the_chief() -> None:
    key = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "bucket", "key": "key"}}}
    newest = a_pod(
        attempt=1,
        state="terminated",
        securityContext={"fsGroup": 17},
        imagePullSecrets=[{"name": "pull"}],
        containers=[{"name": "log"}, {"name": "tensorflow", "env": [{"name": "DTJOB_TASK", "value": "a"}, key]}],
    )
    made = helper_pod(stored(), [], pods=[newest, a_pod(), a_pod("worker", securityContext={"fsGroup": 18})])["spec"]
    assert (made["securityContext"], made["imagePullSecrets"]) == ({"fsGroup": 17}, [{"name": "pull"}])
    assert made["containers"][0]["env"] == [key]


def test_the_image_is_the_one_that_the_job_started_with() -> None:
    job = stored(image=None)
    del job["spec"]["image"]
    with pytest.raises(Refused, match="give --image"):
        helper_pod(job, [])
    job["status"]["image"] = "registry.example/default:1"
    assert helper_pod(job, [])["spec"]["containers"][0]["image"] == "registry.example/default:1"
    assert helper_pod(job, [], "registry.example/b:1")["spec"]["containers"][0]["image"] == "registry.example/b:1"


def test_a_bucket_needs_no_volume() -> None:
    job = stored(storage={"uri": "gs://bucket/path"})
    assert directory_of(typed(job)) == "gs://bucket/path"
    assert helper_pod(job, [])["spec"]["volumes"] == []


@pytest.mark.parametrize("storage", [None, {"volume": {"emptyDir": {}}}])
def test_without_files_that_stay_it_says_so(storage: dict[str, Any] | None) -> None:
    job = stored(storage=storage)
    if storage is None:
        del job["spec"]["checkpoint"]
    with pytest.raises(Refused, match=r"has no checkpoint|emptyDir, which ends with"):
        helper_pod(job, [])


def with_state(state: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "digits-helper-1", "uid": "h", "resourceVersion": "1"},
        "status": {"containerStatuses": [{"name": "helper", "state": state}]},
    }


def becomes(server: ApiServer, state: dict[str, Any]) -> None:
    """Take a helper pod, and show it in this state."""
    server.answer(f"GET {PODS}", {"items": [], "metadata": {}})
    server.answer(f"POST {PODS}", with_state({}))
    server.answer(f"GET {PODS}/digits-helper-1", with_state(state))
    server.answer(f"DELETE {PODS}/digits-helper-1", {})


def test_the_helper_pod_is_deleted_afterwards(server: ApiServer, cluster: Cluster) -> None:
    becomes(server, {"running": {}})
    with running(cluster, stored(), []) as name:
        assert name == "digits-helper-1"
    assert server.asked[-1][:2] == ("DELETE", f"{PODS}/digits-helper-1")


def test_a_pod_that_does_not_start_says_why_and_is_deleted(server: ApiServer, cluster: Cluster) -> None:
    becomes(server, {"waiting": {"reason": "ErrImagePull"}})
    with pytest.raises(NotDone, match="does not start: ErrImagePull"), running(cluster, stored(), []):
        raise AssertionError
    assert server.asked[-1][0] == "DELETE"


@pytest.mark.parametrize(("code", "words"), [(1, "failed (1): No module named tensorboard"), (0, "finished: bye")])
def test_a_pod_that_ends_says_so_with_the_last_line_of_its_log(
    server: ApiServer, cluster: Cluster, code: int, words: str
) -> None:
    becomes(server, {"running": {}})
    assert ended(cluster, "digits-helper-1") == ""
    becomes(server, {"terminated": {"exitCode": code}})
    server.answer(f"GET {PODS}/digits-helper-1/log", words.partition(": ")[2].encode() + b"\n")
    assert ended(cluster, "digits-helper-1") == words
    with pytest.raises(NotDone) as said, running(cluster, stored(), []):
        raise AssertionError
    assert str(said.value).endswith(f"does not start: {words}")


def test_a_pod_that_was_deleted_or_whose_log_is_gone_has_ended(server: ApiServer, cluster: Cluster) -> None:
    assert ended(cluster, "digits-helper-1") == "its pod was deleted"
    server.answer(f"GET {PODS}/digits-helper-1", with_state({"terminated": {"exitCode": 1}}))
    assert ended(cluster, "digits-helper-1") == "failed (1)"


def test_a_pod_whose_creation_is_interrupted_is_deleted(
    server: ApiServer, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server may have made it, and it would mount the claim for a day."""

    def interrupted(_: Cluster, manifest: dict[str, Any]) -> None:
        path = f"{PODS}/{manifest['metadata']['name']}"
        server.answer(f"GET {path}", {"metadata": {"name": manifest["metadata"]["name"], "uid": "h"}})
        server.answer(f"DELETE {path}", {})
        raise KeyboardInterrupt

    server.answer(f"GET {PODS}", {"items": [], "metadata": {}})
    monkeypatch.setattr(Cluster, "create", interrupted)
    with pytest.raises(KeyboardInterrupt), running(cluster, stored(), []):
        raise AssertionError
    assert server.asked[-1][0] == "DELETE"
    assert server.asked[-1][2]["preconditions"] == {"uid": "h"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_helper_pod_is_deleted_when_a_signal_ends_the_command(
    server: ApiServer, cluster: Cluster, tmp_path: Path, number: int
) -> None:
    server.answer(f"GET {JOBS}/digits", stored(tensorBoard={}))
    becomes(server, {"running": {}})
    server.answer(f"GET {PODS}/digits-helper-1/portforward", Fault(503))
    words = ["tensorboard", "digits", "--port", "0", "--kubeconfig", str(server.kubeconfig(tmp_path))]
    before = signal.signal(number, signal.SIG_DFL)  # a command inherits what `nohup` has set to be ignored
    try:
        command = subprocess.Popen([sys.executable, "-m", "dtjob", *words])
    finally:
        signal.signal(number, before)
    with command:
        try:
            while not any("portforward" in path for _, path, _ in list(server.asked)):
                assert command.poll() is None
                time.sleep(0.05)
            command.send_signal(number)
            assert command.wait(120) == 128 + number
        finally:
            command.kill()
    assert server.asked[-1][:2] == ("DELETE", f"{PODS}/digits-helper-1")
