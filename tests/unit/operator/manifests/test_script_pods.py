# SPDX-License-Identifier: Apache-2.0
"""Variables, resources and mounts of a script's job."""

from pathlib import Path
from typing import Any

import pytest

from dtjob.bad_input import BadInput
from dtjob.crd.answers.problems import problems
from dtjob.manifests.script import Script
from dtjob.manifests.script_job import manifest

FILE = Path("train.py")


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
