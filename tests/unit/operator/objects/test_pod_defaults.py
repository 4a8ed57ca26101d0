# SPDX-License-Identifier: Apache-2.0
"""What the operator gives to pods whose templates leave it out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dtjob.objects.defaults import Defaults
from dtjob.objects.gangs import pod_group
from dtjob.objects.kueue import priority_class_of
from dtjob.objects.pod.pod import pod
from dtjob.objects.pod_defaults import PodDefaults
from dtjob.objects.topology import chief_task
from tests.unit.operator.builders import job

GIVEN = {
    "annotations": {"a": "default", "b": "default"},
    "env": [{"name": "A", "value": "default"}, {"name": "B", "value": "default"}],
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"pool": "training", "zone": "x"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "priorityClassName": "batch",
}
DEFAULTS = Defaults(pods=PodDefaults.parse(json.dumps(GIVEN)))
TEMPLATE = {
    "metadata": {"annotations": {"a": "own"}},
    "spec": {
        "nodeSelector": {"pool": "own"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "own"}],
        "imagePullSecrets": [{"name": "own"}],
        "containers": [{"name": "tensorflow", "env": [{"name": "A", "value": "own"}]}],
    },
}


def chief(template: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    """The chief's pod."""
    spec = {"template": template} if template else {}
    one = job(replicaSpecs={"chief": spec, "worker": {"replicas": 1}}, **fields)
    return pod(one, chief_task(one), 0, DEFAULTS)


def variables(made: dict[str, Any]) -> dict[str, str]:
    """The values of A and B."""
    return {one["name"]: one["value"] for one in made["spec"]["containers"][0]["env"] if one["name"] in ("A", "B")}


def test_a_pod_gets_what_its_template_leaves_out() -> None:
    made = chief(None)
    assert made["metadata"]["annotations"] == GIVEN["annotations"]
    assert made["spec"]["nodeSelector"] == GIVEN["nodeSelector"]
    assert made["spec"]["tolerations"][0] == {"key": "gpu", "operator": "Exists"}
    assert made["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    assert made["spec"]["priorityClassName"] == "batch"
    assert variables(made) == {"A": "default", "B": "default"}


def test_values_of_the_template_apply() -> None:
    made = chief(TEMPLATE, scheduling={"priorityClassName": "own"})
    assert made["metadata"]["annotations"] == {"a": "own", "b": "default"}
    assert made["spec"]["nodeSelector"] == {"pool": "own", "zone": "x"}
    assert [one["key"] for one in made["spec"]["tolerations"]][:2] == ["gpu", "own"]
    assert made["spec"]["imagePullSecrets"] == [{"name": "own"}]
    assert made["spec"]["priorityClassName"] == "own"
    assert variables(made) == {"A": "own", "B": "default"}


def test_a_gang_and_a_workload_have_the_priority_of_their_pods() -> None:
    one = job(scheduling={"gang": {}})
    group = pod_group(one, DEFAULTS)
    assert group is not None
    assert group["spec"]["priorityClassName"] == "batch"
    assert priority_class_of(one, DEFAULTS) == ("PriorityClass", "batch")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "the text"),
        ('{"labels": {}}', "labels"),
        ('{"env": [{"name": ""}]}', "env.0.name"),
        ('{"nodeSelector": {"a": 1}}', "nodeSelector.a"),
        ("{", "the text"),
    ],
)
def test_a_mistake_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^{said}: "):
        PodDefaults.parse(text)
