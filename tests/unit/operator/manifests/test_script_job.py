# SPDX-License-Identifier: Apache-2.0
"""The job that `dtjob run` makes of a script."""

from pathlib import Path
from typing import Any

import pytest

from dtjob.bad_input import BadInput
from dtjob.crd.answers.problems import problems
from dtjob.manifests.script import Script
from dtjob.manifests.script_job import manifest

FILE = Path("train.py")


@pytest.mark.parametrize(
    ("script", "gpus", "strategy", "roles"),
    [
        (Script(FILE), 0, "Default", {"chief": {}}),
        (Script(FILE), 1, "Default", {"chief": {}}),
        (Script(FILE), 4, "Mirrored", {"chief": {}}),
        (Script(FILE, workers=1), 0, "Default", {"chief": {}}),
        (Script(FILE, workers=3), 4, "MultiWorkerMirrored", {"worker": {"replicas": 3}}),
        (Script(FILE, ps=2), 0, "ParameterServer", {"chief": {}, "worker": {"replicas": 2}, "ps": {"replicas": 2}}),
        (
            Script(FILE, strategy="ParameterServer", workers=4, evaluator=True),
            0,
            "ParameterServer",
            {"chief": {}, "worker": {"replicas": 4}, "ps": {"replicas": 1}, "evaluator": {}},
        ),
        (Script(FILE, strategy="OneDevice"), 4, "OneDevice", {"chief": {}}),
        (Script(FILE, strategy="MultiWorkerMirrored"), 0, "MultiWorkerMirrored", {"worker": {"replicas": 2}}),
    ],
)
def test_options_and_gpus_give_strategy_and_roles(script, gpus, strategy, roles):
    made = manifest(script, gpus)
    assert (made["spec"]["strategy"], made["spec"]["replicaSpecs"]) == (strategy, roles)
    assert problems({**made, "spec": {**made["spec"], "image": "dtjob-trainer:dev"}}) == []


@pytest.mark.parametrize(
    ("checkpoint", "storage"),
    [
        (None, {"volume": {"emptyDir": {}}}),
        ("gs://bucket/digits", {"uri": "gs://bucket/digits"}),
        ("/data/digits", {"volume": {"hostPath": {"path": "/data/digits", "type": "DirectoryOrCreate"}}}),
    ],
)
def test_checkpoints_are_kept_in_the_run_or_where_they_are_wanted(checkpoint, storage):
    assert manifest(Script(FILE, checkpoint=checkpoint), 0)["spec"]["checkpoint"] == {"storage": storage}


def test_the_job_of_a_script_writes_for_tensorboard():
    assert manifest(Script(FILE), 0)["spec"]["tensorBoard"] == {}


@pytest.mark.parametrize(
    ("name", "job"), [("Train_2.py", "train-2"), ("01 first.py", "job-01-first"), ("ä.py", "job"), ("x" * 99, "x" * 40)]
)
def test_the_name_of_the_job_is_that_of_the_script(name, job):
    assert manifest(Script(Path(name)), 0)["metadata"]["name"] == job
    assert manifest(Script(Path(name), name="mine"), 0)["metadata"]["name"] == "mine"


@pytest.mark.parametrize(
    ("script", "here", "strategy", "computing"),
    [
        (Script(FILE, gpus=1), 4, "Default", {"chief"}),
        (Script(FILE, gpus=2), 0, "Mirrored", {"chief"}),
        (Script(FILE, gpus=2, workers=2, evaluator=True), 0, "MultiWorkerMirrored", {"worker"}),
        (Script(FILE, gpus=1, ps=1), 0, "ParameterServer", {"worker"}),
    ],
)
def test_gpus_are_asked_for_by_the_tasks_that_compute(script, here, strategy, computing):
    spec = manifest(script, here)["spec"]
    assert spec["strategy"] == strategy
    limits = {role: one["resources"]["limits"] for role, one in spec["replicaSpecs"].items() if "resources" in one}
    assert limits == {role: {"nvidia.com/gpu": script.gpus} for role in computing}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (Script(FILE, strategy="Mirrored", workers=2), "--workers: Mirrored trains in one task"),
        (Script(FILE, strategy="MultiWorkerMirrored", ps=1), "--ps: only ParameterServer has parameter servers"),
        (Script(FILE, strategy="mirrored"), "--strategy: mirrored is none of Default, .*; write Mirrored$"),
        (Script(FILE, strategy="horovod"), "--strategy: horovod is none of Default, OneDevice, Mirrored"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(script, told):
    with pytest.raises(BadInput, match=told):
        manifest(script, 0)


def test_arguments_of_the_script_are_the_programs():
    program = manifest(Script(FILE, ("--epochs", "3")), 0)["spec"]["program"]
    assert program == {"entrypoint": "train.py", "args": ["--epochs", "3"]}


def spec(**options: Any) -> dict[str, Any]:
    made = manifest(Script(FILE, **options), 0)
    assert problems(made) == []
    found: dict[str, Any] = made["spec"]
    return found


def test_every_task_gets_cpu_and_memory_and_only_workers_of_parameter_server_get_gpus() -> None:
    roles = spec(ps=1, evaluator=True, cpu="2", memory="4Gi", gpus=1)["replicaSpecs"]
    limits = {role: one["resources"]["limits"] for role, one in roles.items()}
    both = {"cpu": "2", "memory": "4Gi"}
    assert limits == {"chief": both, "worker": {**both, "nvidia.com/gpu": 1}, "ps": both, "evaluator": both}


def test_variables_keep_their_text_and_the_last_of_a_name_counts() -> None:
    program = spec(env=("A=1", "B=x=y", "C=", "A=2"), secrets=("wandb", "s3"))["program"]
    assert program["env"] == [{"name": "A", "value": "2"}, {"name": "B", "value": "x=y"}, {"name": "C", "value": ""}]
    assert program["envFrom"] == [{"secretRef": {"name": "wandb"}}, {"secretRef": {"name": "s3"}}]


def test_each_claim_is_one_volume_of_every_task() -> None:
    roles = spec(workers=2, evaluator=True, mounts=("data:/data:ro", "out:/out", "data:/more"))["replicaSpecs"]
    pods = [one["template"]["spec"] for one in roles.values()]
    assert pods[0] == pods[1]
    assert pods[0]["volumes"] == [
        {"name": "mount-1", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "mount-2", "persistentVolumeClaim": {"claimName": "out"}},
    ]
    assert pods[0]["containers"][0]["volumeMounts"] == [
        {"name": "mount-1", "mountPath": "/data", "readOnly": True},
        {"name": "mount-2", "mountPath": "/out"},
        {"name": "mount-1", "mountPath": "/more"},
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"memory": "16GB"}, "--memory: '16GB' is no quantity; write for example 4, 500m or 16Gi"),
        ({"cpu": ""}, "--cpu: '' is no quantity"),
        ({"env": ("A",)}, "--env: 'A' is not NAME=VALUE; --env-from-secret NAME takes the keys of a Secret"),
        ({"env": ("=1",)}, "--env: '=1' is not NAME=VALUE"),
        ({"secrets": ("",)}, "--env-from-secret: '' is no name"),
        *(
            ({"mounts": (given,)}, f"--mount: {given!r} is not CLAIM:/PATH or CLAIM:/PATH:ro")
            for given in ("data", ":/data", "data:data", "data:/data:rw")
        ),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_option(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as refused:
        spec(**options)
    assert str(refused.value).startswith(said)
