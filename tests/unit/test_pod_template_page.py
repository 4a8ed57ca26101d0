# SPDX-License-Identifier: Apache-2.0
"""docs/jobs/pod-template.md: each row is what becomes of a template."""

from typing import Any

import pytest

from dtjob.api.job import API_VERSION, KIND
from dtjob.crd.answers.problems import problems
from dtjob.objects.defaults import Defaults
from dtjob.objects.pod.pod import pod
from dtjob.objects.topology import chief_task
from tests.unit.operator.builders import job

DEFAULTS = Defaults(image="default:1", pod_labels={"team": "default", "tier": "default"})
LIMITS = {"limits": {"memory": "1Gi"}}


def made(template: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The chief's pod of a job whose chief has this template."""
    one = job(replicaSpecs={"chief": {"template": template}, "worker": {"replicas": 1}}, **fields)
    return pod(one, chief_task(one), 0, DEFAULTS)


def test_fields_of_a_template_that_take_precedence() -> None:
    spec = {"automountServiceAccountToken": True, "enableServiceLinks": True, "securityContext": {"runAsUser": 0}}
    found = made({"metadata": {"labels": {"team": "vision"}, "annotations": {"a": "b"}}, "spec": spec})
    assert found["metadata"]["labels"]["team"] == "vision"
    assert found["metadata"]["labels"]["tier"] == "default"
    assert found["metadata"]["annotations"] == {"a": "b"}
    assert found["spec"]["automountServiceAccountToken"] is True
    assert found["spec"]["enableServiceLinks"] is True
    assert found["spec"]["securityContext"]["runAsUser"] == 0
    assert found["spec"]["securityContext"]["fsGroup"] == 1000


def test_fields_of_a_template_that_are_merged() -> None:
    training = {"name": "tensorflow", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 9000}]}
    spec = {"containers": [training], "volumes": [{"name": "v", "emptyDir": {}}], "tolerations": [{"key": "gpu"}]}
    found = made({"spec": spec})["spec"]
    (container,) = found["containers"]
    assert {"A", "DTJOB_CLUSTER_HASH"} <= {one["name"] for one in container["env"]}
    assert {9000, 2222} <= {one["containerPort"] for one in container["ports"]}
    assert len(found["volumes"]) > 1
    assert len(found["tolerations"]) == 3


TWICE = [
    ({"image": "a"}, {"spec": {"containers": [{"name": "tensorflow", "image": "b"}]}}, {}),
    ({"scheduling": {"priorityClassName": "a"}}, {"spec": {"priorityClassName": "b"}}, {}),
    ({}, {"spec": {"containers": [{"name": "tensorflow", "resources": LIMITS}]}}, {"resources": LIMITS}),
    (
        {"program": {"entrypoint": "a.py", "env": [{"name": "A", "value": "1"}]}},
        {"spec": {"containers": [{"name": "tensorflow", "env": [{"name": "A", "value": "2"}]}]}},
        {},
    ),
]


@pytest.mark.parametrize(("spec", "template", "role"), TWICE, ids=["image", "priority", "resources", "env"])
def test_fields_that_are_set_in_the_role_and_in_the_template_are_refused(
    spec: dict[str, Any], template: dict[str, Any], role: dict[str, Any]
) -> None:
    def manifest(chief: dict[str, Any]) -> dict[str, Any]:
        base = {"strategy": "Mirrored", "image": "a", "program": {"entrypoint": "a.py"}, **spec}
        kind = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "digits"}}
        return {**kind, "spec": {**base, "replicaSpecs": {"chief": chief}}}

    assert problems(manifest({})) == []
    assert problems(manifest({**role, "template": template})) != []
