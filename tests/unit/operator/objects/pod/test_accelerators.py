# SPDX-License-Identifier: Apache-2.0
"""dtjob.objects.pod.accelerators: what pods get for their GPUs and TPUs."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects.pod.accelerators import unequal_gpus
from dtjob.objects.pod.pod import pod
from tests.unit.operator import builders

V5E = {"accelerator": "tpu-v5-lite-podslice", "topology": "2x4"}


def spec(job: Job, task: str = "chief-0") -> dict[str, Any]:
    made: dict[str, Any] = pod(job, builders.task(task), 0)["spec"]
    return made


def tpu_job(replica: dict[str, Any] | None = None, **tpu: Any) -> Job:
    return builders.job(
        "TPU",
        replicaSpecs={"chief": replica or {}, "evaluator": {}},
        checkpoint={"storage": {"uri": "gs://bucket/digits"}},
        strategyOptions={"tpu": tpu},
    )


def gpu_job(**container: Any) -> Job:
    template = {"spec": {"containers": [{"name": "log"}, {"name": "tensorflow", **container}]}}
    return builders.job(replicaSpecs={"chief": {}, "worker": {"replicas": 2, "template": template}})


def shared_memory(job: Job, task: str) -> tuple[list[Any], list[Any]]:
    """The pod's volumes in memory, and what the training container mounts at /dev/shm."""
    made = spec(job, task)
    (training,) = (one for one in made["containers"] if one["name"] == "tensorflow")
    volumes = [one["emptyDir"] for one in made["volumes"] if one.get("emptyDir", {}).get("medium") == "Memory"]
    return volumes, [one["name"] for one in training["volumeMounts"] if one["mountPath"] == "/dev/shm"]


def test_the_chief_gets_a_tpu_slice_as_gke_asks_for_it() -> None:
    replica = {
        "resources": {"limits": {"memory": "16Gi"}},
        "template": {"spec": {"nodeSelector": {"pool": "a"}, "tolerations": [{"key": "mine"}]}},
    }
    made = spec(tpu_job(replica, **V5E))
    assert made["nodeSelector"] == {
        "pool": "a",
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    assert {"key": "mine"} in made["tolerations"]
    assert {"key": "google.com/tpu", "operator": "Exists", "effect": "NoSchedule"} in made["tolerations"]
    assert made["containers"][0]["resources"] == {
        "limits": {"memory": "16Gi", "google.com/tpu": 8},
        "requests": {"google.com/tpu": 8},
    }


def test_the_evaluator_takes_no_chips() -> None:
    made = spec(tpu_job(**V5E), "evaluator-0")
    assert "resources" not in made["containers"][0]
    assert "nodeSelector" not in made


@pytest.mark.parametrize("job", [tpu_job(address="my-tpu"), tpu_job(), builders.job("TPU")])
def test_a_tpu_that_is_reached_otherwise_asks_nothing_of_the_node(job: Job) -> None:
    made = spec(job)
    assert "nodeSelector" not in made
    assert "resources" not in made["containers"][0]


def test_only_a_task_with_gpus_tolerates_the_taint_of_gpu_nodes() -> None:
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    job = gpu_job(resources={"limits": {"nvidia.com/gpu": 1}})
    assert toleration in spec(job, "worker-0")["tolerations"]
    assert toleration not in spec(job, "chief-0")["tolerations"]


def gpus_told(job: Job, task: str) -> str | None:
    """What the training container is told of its GPUs."""
    (training,) = (one for one in spec(job, task)["containers"] if one["name"] == "tensorflow")
    return next((one["value"] for one in training["env"] if one["name"] == "DTJOB_GPUS"), None)


def test_the_environment_has_the_number_of_the_tasks_gpus() -> None:
    """So that it does not train without them where TensorFlow finds none."""
    job = gpu_job(resources={"limits": {"nvidia.com/gpu": 2}})
    assert gpus_told(job, "worker-0") == "2"
    assert gpus_told(job, "chief-0") is None


def test_a_number_of_gpus_that_the_api_server_refuses_counts_as_none() -> None:
    assert gpus_told(gpu_job(resources={"limits": {"nvidia.com/gpu": "500m"}}), "worker-0") is None


EIGHT: dict[str, Any] = {"resources": {"limits": {"nvidia.com/gpu": 8}}}
IN_TEMPLATE: dict[str, Any] = {"template": {"spec": {"containers": [{"name": "tensorflow", **EIGHT}]}}}


@pytest.mark.parametrize(
    ("chief", "evaluator", "hidden"),
    [
        (EIGHT, {}, True),
        (IN_TEMPLATE, {}, True),
        (EIGHT, EIGHT, False),
        ({}, {}, False),
        ({"template": {"metadata": {}}}, {}, False),
    ],
)
def test_an_evaluator_without_gpus_leaves_those_of_the_chiefs_node_alone(chief, evaluator, hidden):
    volume = {"persistentVolumeClaim": {"claimName": "digits"}}
    job = builders.job(
        replicaSpecs={"chief": chief, "worker": {}, "evaluator": evaluator}, checkpoint={"storage": {"volume": volume}}
    )
    (training,) = spec(job, "evaluator-0")["containers"]
    assert ({"name": "CUDA_VISIBLE_DEVICES", "value": "-1"} in training["env"]) == hidden


@pytest.mark.parametrize(("task", "told"), [("chief-0", None), ("ps-0", None), ("worker-0", "1")])
def test_parameter_servers_and_coordinators_are_set_to_use_no_gpus(task: str, told: str | None) -> None:
    gpu = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    job = builders.job("ParameterServer", replicaSpecs=dict.fromkeys(("chief", "worker", "ps"), gpu))
    assert gpus_told(job, task) == told


def test_gpus_bring_shared_memory_with_a_limit() -> None:
    job = gpu_job(resources={"limits": {"nvidia.com/gpu": "4"}})
    assert shared_memory(job, "worker-0") == ([{"medium": "Memory", "sizeLimit": "4Gi"}], ["dtjob-shm"])
    assert shared_memory(job, "chief-0") == ([], [])
    assert shared_memory(gpu_job(resources={"limits": {"nvidia.com/gpu": 0}}), "worker-0") == ([], [])


def test_the_users_own_shared_memory_stays() -> None:
    mount = {"name": "mine", "mountPath": "/dev/shm/"}
    made = spec(gpu_job(resources={"limits": {"nvidia.com/gpu": 1}}, volumeMounts=[mount]), "worker-0")
    assert mount in made["containers"][0]["volumeMounts"]
    assert not [one for one in made["volumes"] if one["name"] == "dtjob-shm"]


@pytest.mark.parametrize(
    ("strategy", "roles", "said"),
    [
        ("MultiWorkerMirrored", {"chief": {}, "worker": EIGHT}, "chief asks for 0 nvidia.com/gpu and worker for 8"),
        ("MultiWorkerMirrored", {"chief": EIGHT, "worker": {}}, "chief asks for 8 nvidia.com/gpu and worker for 0"),
        ("MultiWorkerMirrored", {"chief": EIGHT, "worker": IN_TEMPLATE}, ""),
        ("MultiWorkerMirrored", {"worker": EIGHT, "evaluator": {}}, ""),
        ("MultiWorkerMirrored", {"chief": {}, "worker": {}}, ""),
        ("ParameterServer", {"chief": {}, "worker": EIGHT, "ps": {}}, ""),
    ],
)
def test_tasks_of_a_group_need_the_same_number_of_gpus(strategy: str, roles: dict[str, Any], said: str) -> None:
    checkpoint = {"storage": {"uri": "gs://bucket/digits"}}
    found = unequal_gpus(builders.job(strategy, replicaSpecs=roles, checkpoint=checkpoint))
    assert (said in found, bool(found)) == (True, bool(said))
