# SPDX-License-Identifier: Apache-2.0
"""Server-side apply by two field managers: lists whose entries have keys are merged entry by entry."""

from typing import Any

import pytest

from tests.cluster.support.definitions import Install, changeable
from tools.cluster.rest import Api, ApiError, Object

SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}


def chief(training: Object, **pod: Any) -> Object:
    """A job of which this is said, and no more."""
    spec = {"containers": [{"name": "tensorflow", **training}], **pod}
    return {"spec": {"replicaSpecs": {"chief": {"template": {"spec": spec}}}}}


AUTHOR = chief(
    {
        "image": "a",
        "env": [{"name": "A", "value": "1"}],
        "ports": [{"containerPort": 80}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    },
    volumes=[{"name": "data", "emptyDir": {}}],
    imagePullSecrets=[{"name": "registry"}],
    topologySpreadConstraints=[SPREAD],
)
PLATFORM = chief(
    {
        "env": [{"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80, "protocol": "UDP"}],
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
    },
    volumes=[{"name": "cache", "emptyDir": {}}],
    imagePullSecrets=[{"name": "mirror"}],
    topologySpreadConstraints=[{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}],
    initContainers=[{"name": "warm-up", "image": "b"}],
)


def applied(api: Api, namespace: str, group: str, manager: str, manifest: Object, sub: str = "") -> Object:
    """Server-side apply of the job `digits`."""
    path = f"apis/{group}/v1beta1/namespaces/{namespace}/distributedtrainingjobs/digits"
    head = {"apiVersion": f"{group}/v1beta1", "kind": "DistributedTrainingJob", "metadata": {"name": "digits"}}
    query = {"fieldManager": manager, "fieldValidation": "Strict"}
    return api.call("PATCH", f"{path}/{sub}".rstrip("/"), head | manifest, query, "application/apply-patch+yaml")


def whole(manifest: Object) -> Object:
    """A job that can be created, with this beside."""
    return {"spec": {"strategy": "Mirrored", **manifest["spec"]}}


def test_lists_that_two_managers_apply_are_merged_by_their_keys(
    api: Api, namespace: str, other_definition: Install
) -> None:
    """Under a definition whose spec may change: in ours that is so while a job is put together, and not afterwards."""
    group = other_definition(changeable)
    applied(api, namespace, group, "author", whole(AUTHOR))
    pod = applied(api, namespace, group, "platform", PLATFORM)["spec"]["replicaSpecs"]["chief"]["template"]["spec"]
    (training,) = pod["containers"]
    assert {one["name"]: one["value"] for one in training["env"]} == {"A": "1", "B": "2"}
    assert [(one["containerPort"], one["protocol"]) for one in training["ports"]] == [(80, "TCP"), (80, "UDP")]
    assert [one["mountPath"] for one in training["volumeMounts"]] == ["/data", "/cache"]
    assert [one["name"] for one in pod["volumes"]] == ["data", "cache"]
    assert [one["name"] for one in pod["imagePullSecrets"]] == ["registry", "mirror"]
    assert len(pod["topologySpreadConstraints"]) == 2
    # Who applies less gives up what was its own, and nothing of the other's.
    pod = applied(api, namespace, group, "platform", chief({}))["spec"]["replicaSpecs"]["chief"]["template"]["spec"]
    assert [one["name"] for one in pod["containers"][0]["env"]] == ["A"]
    assert [one["name"] for one in pod["volumes"]] == ["data"]


def test_a_second_manager_may_apply_an_unchanged_part_of_a_job(api: Api, namespace: str) -> None:
    """Where lists are atomic, that one says of all the others' entries that they should go."""
    group = "training.dtjob.dev"
    created = applied(api, namespace, group, "author", whole(AUTHOR))
    part = chief({"env": [{"name": "A", "value": "1"}]})
    again = applied(api, namespace, group, "platform", part)
    assert again["spec"] == created["spec"]
    assert {one["manager"] for one in again["metadata"]["managedFields"]} == {"author", "platform"}
    with pytest.raises(ApiError, match="replicaSpecs cannot be changed"):
        applied(api, namespace, group, "platform", PLATFORM)


def test_conditions_of_two_managers_are_merged_by_their_types(api: Api, namespace: str) -> None:
    group = "training.dtjob.dev"
    applied(api, namespace, group, "author", whole(AUTHOR))
    for manager, kind in (("dtjob", "Running"), ("quota", "Admitted")):
        condition = {"type": kind, "status": "True", "reason": "A", "message": "", "observedGeneration": 1}
        condition["lastTransitionTime"] = "2026-11-21T10:00:00Z"
        stored = applied(api, namespace, group, manager, {"status": {"conditions": [condition]}}, "status")
    assert [one["type"] for one in stored["status"]["conditions"]] == ["Running", "Admitted"]
