"""dtjob's definition under groups of their own, as it might have been or might come to be."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from copy import deepcopy

from dtjob.crd import definition
from dtjob.crd.schema import LIST_KEYS, VALIDATIONS
from tools.cluster.rest import Api, Object

Change = Callable[[Object], None]
Install = Callable[[Change], str]


def install(api: Api, change: Change) -> str:
    """Install the definition after a change of its schema; gives its group."""
    crd = deepcopy(definition.crd())
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    crd["spec"]["group"], crd["metadata"]["name"] = group, name_in(group)
    # A definition that shares short names with another is never served under them.
    crd["spec"]["names"] = {key: crd["spec"]["names"][key] for key in ("kind", "listKind", "plural", "singular")}
    change(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    api.create("customresourcedefinitions", None, crd)
    api.wait_established(name_in(group))
    return group


def name_in(group: str) -> str:
    """The definition's name."""
    return f"distributedtrainingjobs.{group}"


def upgrade(api: Api, group: str) -> Object:
    """Bring the group's definition to what it is today. It is served a moment later. Gives what it was."""
    before = api.get("customresourcedefinitions", None, name_in(group))
    downgrade(api, group, {"spec": definition.crd()["spec"]})
    return before


def downgrade(api: Api, group: str, before: Object) -> None:
    """Bring the group's definition to what it was before an upgrade. It is served a moment later."""
    crd = api.get("customresourcedefinitions", None, name_in(group))
    crd["spec"]["versions"] = before["spec"]["versions"]
    api.replace("customresourcedefinitions", None, crd)


def changeable(schema: Object) -> None:
    """The spec may change."""
    spec = schema["properties"]["spec"]
    replicas = spec["properties"]["replicas"]
    for part in (schema, spec, replicas, *replicas["properties"].values()):
        part[VALIDATIONS] = [one for one in part[VALIDATIONS] if "cannot be changed" not in one["message"]]


def lenient(schema: Object) -> None:
    """Lists are atomic, and there are no rules."""
    for part in (*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])):
        if part.pop(LIST_KEYS, None):
            del part["x-kubernetes-list-type"]
        lenient(part)
    schema.pop(VALIDATIONS, None)


LATER: dict[str, tuple[str, ...]] = {
    "spec": ("suspend", "managedBy", "successPolicy"),
    "failurePolicy": ("rules",),
    "runPolicy": ("activeDeadlineSeconds", "startDeadlineSeconds", "ttlSecondsAfterFinished"),
}
"""What the first release's spec and its blocks did not have."""


def first_release(schema: Object) -> None:
    """Without what came later, and without rules, which speak of it."""
    lenient(schema)
    spec = schema["properties"]["spec"]
    for block, fields in LATER.items():
        part = spec if block == "spec" else spec["properties"][block]
        for field in fields:
            del part["properties"][field]
