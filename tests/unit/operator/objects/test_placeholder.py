# SPDX-License-Identifier: Apache-2.0
"""A placeholder goes where the worker would go, and does nothing there."""

from typing import Any

from dtjob.objects import labels
from dtjob.objects.placeholder import is_placeholder, placeholder, placeholder_name
from dtjob.objects.pod.pod import pod
from dtjob.objects.shared import service
from dtjob.plan.seen.children import PodFacts
from tests.unit.operator import builders

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"team": "vision"}, "annotations": {"sidecar.istio.io/inject": "false"}},
    "spec": {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "readinessGates": [{"conditionType": "a.b/c"}],
        "initContainers": [
            {"name": "get", "image": "busybox", "command": ["get"], "resources": {"limits": {"cpu": 4}}}
        ],
        "containers": [
            {
                "name": "tensorflow",
                "image": "own:1",
                "command": ["train"],
                "args": ["--all"],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "lifecycle": {"preStop": {"exec": {"command": ["save"]}}},
                "readinessProbe": {"exec": {"command": ["ready"]}},
            },
            {"name": "log", "image": "log:1", "args": ["-f"], "resources": {"limits": {"memory": "1Gi"}}},
        ],
    },
}
JOB = builders.job(
    replicaSpecs={"chief": {}, "worker": {"template": TEMPLATE, "resources": {"limits": {"nvidia.com/gpu": 2}}}},
    scheduling={"priorityClassName": "high"},
)
PLACES = ("nodeSelector", "tolerations", "volumes", "priorityClassName", "affinity", "securityContext")


def test_the_scheduler_and_admission_see_the_worker() -> None:
    worker, made = pod(JOB, builders.task("worker-0"), 0), placeholder(JOB, 0)
    for field in PLACES:
        assert made["spec"].get(field) == worker["spec"].get(field), field
    for containers in ("containers", "initContainers"):
        for one, of_worker in zip(made["spec"][containers], worker["spec"][containers], strict=True):
            for field in ("name", "image", "resources", "securityContext"):
                assert one.get(field) == of_worker.get(field), (one["name"], field)
    assert made["metadata"]["annotations"] == worker["metadata"]["annotations"]
    assert made["metadata"]["ownerReferences"] == worker["metadata"]["ownerReferences"]


def test_a_placeholder_only_sleeps_and_has_a_short_grace_period() -> None:
    made = placeholder(JOB, 0)
    for one in (*made["spec"]["containers"], *made["spec"]["initContainers"]):
        assert one["command"] == ["sleep", "infinity"]
        assert not {"args", "env", "lifecycle", "volumeMounts", "ports", "readinessProbe"} & one.keys()
    assert made["spec"]["terminationGracePeriodSeconds"] == 1
    assert made["spec"]["restartPolicy"] == "Never"
    assert "readinessGates" not in made["spec"]


def test_a_placeholder_is_no_attempt_of_a_task_and_has_no_host_name() -> None:
    made = placeholder(JOB, 3)
    assert made["metadata"]["name"] == placeholder_name(JOB, 3) == "digits-worker-3-placeholder"
    assert is_placeholder(made["metadata"]["name"])
    assert not is_placeholder(pod(JOB, builders.task("worker-0"), 0)["metadata"]["name"])
    assert PodFacts.read(made).task_id is None
    assert not service(JOB)["spec"]["selector"].items() <= labels.of(made).items()
    assert "hostname" not in made["spec"]
    assert labels.of(made)[labels.JOB_UID] == builders.JOB_UID
