"""Server-side apply by two field managers: lists whose entries have keys are merged entry by entry."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from dtjob.crd import definition
from dtjob.crd.schema import LIST_KEYS
from tests.cluster.support.chart import wait_until
from tests.cluster.support.jobs import job
from tools.cluster.rest import Api, ApiError, Object

SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}


def chief(training: Object, **pod: Any) -> Object:
    """A job of which this is said, and no more."""
    spec = {"containers": [{"name": "tensorflow", **training}], **pod}
    return {"spec": {"replicas": {"chief": {"template": {"spec": spec}}}}}


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

Apply = Callable[..., Object]


@pytest.fixture
def other_definition(api: Api) -> Iterator[Callable[[Callable[[Object], None]], str]]:
    """Installs the definition under a group of its own, after a change; gives that group."""
    made = []

    def install(change: Callable[[Object], None]) -> str:
        crd = deepcopy(definition.crd())
        group = f"g{uuid.uuid4().hex[:8]}.example.com"
        crd["spec"]["group"], name = group, f"{crd['spec']['names']['plural']}.{group}"
        crd["metadata"]["name"] = name
        # A definition that shares short names with another is never served under them.
        crd["spec"]["names"] = {key: crd["spec"]["names"][key] for key in ("kind", "listKind", "plural", "singular")}
        change(schema_of(crd))
        made.append(api.create("customresourcedefinitions", None, crd)["metadata"]["name"])
        api.wait_established(name)
        return group

    yield install
    for name in made:
        api.delete("customresourcedefinitions", None, name)


def schema_of(crd: Object) -> Object:
    found: Object = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def applied(api: Api, namespace: str, group: str, manager: str, manifest: Object, sub: str = "") -> Object:
    """Server-side apply of the job `digits`."""
    path = f"apis/{group}/v1alpha1/namespaces/{namespace}/distributedtrainingjobs/digits"
    head = {"apiVersion": f"{group}/v1alpha1", "kind": "DistributedTrainingJob", "metadata": {"name": "digits"}}
    query = {"fieldManager": manager, "fieldValidation": "Strict"}
    return api.call("PATCH", f"{path}/{sub}".rstrip("/"), head | manifest, query, "application/apply-patch+yaml")


def whole(manifest: Object) -> Object:
    """A job that can be created, with this beside."""
    return {"spec": {"strategy": "Mirrored", "image": "a", **manifest["spec"]}}


def changeable(schema: Object) -> None:
    spec = schema["properties"]["spec"]
    spec["x-kubernetes-validations"] = [one for one in spec["x-kubernetes-validations"] if "oldSelf" not in one["rule"]]


def test_what_two_managers_apply_is_merged_by_keys(
    api: Api, namespace: str, other_definition: Callable[[Callable[[Object], None]], str]
) -> None:
    """Under a definition whose spec may change: in ours that is so while a job is put together, and not afterwards."""
    group = other_definition(changeable)
    applied(api, namespace, group, "author", whole(AUTHOR))
    pod = applied(api, namespace, group, "platform", PLATFORM)["spec"]["replicas"]["chief"]["template"]["spec"]
    (training,) = pod["containers"]
    assert {one["name"]: one["value"] for one in training["env"]} == {"A": "1", "B": "2"}
    assert [(one["containerPort"], one["protocol"]) for one in training["ports"]] == [(80, "TCP"), (80, "UDP")]
    assert [one["mountPath"] for one in training["volumeMounts"]] == ["/data", "/cache"]
    assert [one["name"] for one in pod["volumes"]] == ["data", "cache"]
    assert [one["name"] for one in pod["imagePullSecrets"]] == ["registry", "mirror"]
    assert len(pod["topologySpreadConstraints"]) == 2
    # Who applies less gives up what was its own, and nothing of the other's.
    pod = applied(api, namespace, group, "platform", chief({}))["spec"]["replicas"]["chief"]["template"]["spec"]
    assert [one["name"] for one in pod["containers"][0]["env"]] == ["A"]
    assert [one["name"] for one in pod["volumes"]] == ["data"]


def test_another_manager_may_apply_a_part_of_a_job_as_it_is(api: Api, namespace: str) -> None:
    """Where lists are atomic, that one says of all the others' entries that they should go."""
    group = "training.dtjob.dev"
    created = applied(api, namespace, group, "author", whole(AUTHOR))
    part = chief({"env": [{"name": "A", "value": "1"}]})
    again = applied(api, namespace, group, "platform", part)
    assert again["spec"] == created["spec"]
    assert {one["manager"] for one in again["metadata"]["managedFields"]} == {"author", "platform"}
    with pytest.raises(ApiError, match="replicas cannot be changed"):
        applied(api, namespace, group, "platform", PLATFORM)


def test_conditions_of_two_managers_stand_side_by_side(api: Api, namespace: str) -> None:
    group = "training.dtjob.dev"
    applied(api, namespace, group, "author", whole(AUTHOR))
    for manager, kind in (("dtjob", "Running"), ("quota", "Admitted")):
        condition = {"type": kind, "status": "True", "reason": "A", "message": "", "observedGeneration": 1}
        condition["lastTransitionTime"] = "2026-11-21T10:00:00Z"
        stored = applied(api, namespace, group, manager, {"status": {"conditions": [condition]}}, "status")
    assert [one["type"] for one in stored["status"]["conditions"]] == ["Running", "Admitted"]


def test_a_job_with_a_repeated_entry_lives_on_when_the_definition_comes_to_refuse_it(
    api: Api, namespace: str, other_definition: Callable[[Callable[[Object], None]], str]
) -> None:
    """Earlier definitions took lists for atomic: their jobs must not lose their status writes by an upgrade."""

    def without_keys(schema: Object) -> None:
        for part in (*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])):
            if part.pop(LIST_KEYS, None):
                del part["x-kubernetes-list-type"]
            without_keys(part)

    group = other_definition(without_keys)
    twice = chief({"image": "a", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]})
    base = f"apis/{group}/v1alpha1/namespaces/{namespace}/distributedtrainingjobs"
    made = api.call("POST", base, {**job(), "apiVersion": f"{group}/v1alpha1", "spec": whole(twice)["spec"]})
    crd = api.get("customresourcedefinitions", None, f"distributedtrainingjobs.{group}")
    crd["spec"]["versions"] = definition.crd()["spec"]["versions"]
    api.replace("customresourcedefinitions", None, crd)
    path = f"{base}/{made['metadata']['name']}"

    def refused_now() -> bool:
        try:
            api.call("POST", base, {**job("other"), "apiVersion": f"{group}/v1alpha1", "spec": whole(twice)["spec"]})
        except ApiError as error:
            return "Duplicate value" in error.message
        api.call("DELETE", f"{base}/other")
        return False

    wait_until(refused_now, "the new definition is served")
    stored = api.call("PUT", f"{path}/status", {**made, "status": {"phase": "Running"}})
    assert stored["status"] == {"phase": "Running"}
    stored["metadata"].setdefault("labels", {})["team"] = "vision"
    assert api.call("PUT", path, stored)["metadata"]["labels"] == {"team": "vision"}
