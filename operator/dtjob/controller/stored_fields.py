# SPDX-License-Identifier: Apache-2.0
"""The fields of an object that the store keeps in memory: those that are read.

An API server gives 9 KB of JSON for a pod, which are 50 KB as Python objects. Whoever begins to read another field of
a child adds it here; `tests/unit/operator/controller/test_stored_fields.py` fails at a field that is read and not kept.
"""

import sys
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from dtjob.api.job import KIND
from dtjob.objects import drift, gangs, kueue, labels
from dtjob.objects.manifest import Manifest


class Leaf(Enum):
    """How a field is kept that is kept whole."""

    OWN = "own"
    """As it is: its value is this object's alone, such as a uid."""
    COMMON = "common"
    """A string that many objects have, such as a reason: held once for all."""


class Each(dict[str, Any]):
    """Of each object in a list these fields. Lists with `alike` hold objects that many have: each is held once."""

    def __init__(self, fields: Mapping[str, Any], alike: bool = False) -> None:
        super().__init__(fields)
        self.alike = alike


OWN, COMMON = Leaf.OWN, Leaf.COMMON

_IDENTITY: dict[str, Any] = {
    "name": OWN,
    "namespace": COMMON,
    "uid": OWN,
    "resourceVersion": OWN,
    "creationTimestamp": COMMON,
    "deletionTimestamp": OWN,
    "deletionGracePeriodSeconds": OWN,
    "ownerReferences": Each(dict.fromkeys(("apiVersion", "kind", "name", "uid", "controller"), COMMON), alike=True),
}
_POD_LABELS = (labels.JOB_NAME, labels.ROLE, labels.INDEX, labels.SERVING)
_REASON: dict[str, Any] = {"reason": COMMON, "message": COMMON}
_ENDED: dict[str, Any] = {
    "exitCode": OWN,
    "signal": OWN,
    "reason": COMMON,
    "message": OWN,
    "startedAt": COMMON,
    "finishedAt": COMMON,
}
_CONTAINER: dict[str, Any] = {
    "name": COMMON,
    "state": {
        "waiting": _REASON,
        "running": {"startedAt": COMMON},
        "terminated": _ENDED,
    },
    "lastState": {"terminated": _ENDED},
}
_LIMITS: dict[str, Any] = {"name": COMMON, "resources": {"limits": {"memory": COMMON}}}
_KIND: dict[str, Any] = {"apiVersion": COMMON, "kind": COMMON}
_OUR_LABELS = dict.fromkeys((labels.MANAGED_BY, labels.JOB_NAME, labels.JOB_UID), COMMON)
_OF_A_JOB: dict[str, Any] = {**_KIND, "metadata": {**_IDENTITY, "labels": _OUR_LABELS}}

FIELDS: dict[str, dict[str, Any]] = {
    "Pod": {
        **_KIND,
        "metadata": {**_IDENTITY, "labels": dict.fromkeys(_POD_LABELS, COMMON)},
        "spec": {
            "nodeName": COMMON,
            "hostname": OWN,
            "terminationGracePeriodSeconds": OWN,
            "readinessGates": OWN,
            "schedulingGates": OWN,
            "initContainers": Each(_LIMITS),
            "containers": Each(_LIMITS),
        },
        "status": {
            "phase": COMMON,
            **_REASON,
            "podIP": OWN,
            "conditions": Each({"type": COMMON, "status": COMMON, "lastTransitionTime": COMMON, **_REASON}, alike=True),
            "initContainerStatuses": Each(_CONTAINER),
            "containerStatuses": Each(_CONTAINER),
        },
    },
    kueue.KIND: {
        **_KIND,
        "metadata": {
            **_IDENTITY,
            "generation": OWN,
            "labels": dict.fromkeys((labels.JOB_NAME, labels.JOB_UID), COMMON),
            "annotations": dict.fromkeys((kueue.SHAPE, kueue.REPLACES), OWN),
        },
        "spec": {
            **dict.fromkeys(("queueName", "active", "priorityClassRef"), OWN),
            "podSets": Each({"name": COMMON, "count": OWN, "minCount": OWN, "topologyRequest": OWN}),
        },
        "status": dict.fromkeys(
            ("conditions", "admission", "admissionChecks", "reclaimablePods", "accumulatedPastExecutionTimeSeconds"),
            OWN,
        ),
    },
    **{kind: {**_OF_A_JOB, drift.SAID: OWN} for kind in drift.SHARED_KINDS},
    "PersistentVolumeClaim": {**_OF_A_JOB, "spec": {"storageClassName": COMMON}, "status": {"phase": COMMON}},
    **{kind: {**_OF_A_JOB, "spec": OWN} for kind in gangs.PROVIDERS},
}
"""The fields that are kept of each kind of child."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def kept(manifest: Manifest) -> Manifest:
    """What is kept of the object: a copy that shares what is alike with others', so nobody may change it."""
    if manifest["kind"] == KIND:
        return _job(shallow(manifest))
    if manifest["kind"] in drift.SHARED_KINDS:
        manifest = drift.with_said(manifest)
    fields = FIELDS.get(manifest["kind"])
    return manifest if fields is None else _of_object(manifest, fields)


def _job(job: Manifest) -> Manifest:
    """A job without what says who wrote it: its spec once or twice more, which no status write needs to repeat."""
    metadata = {name: value for name, value in job["metadata"].items() if name != "managedFields"}
    if annotations := metadata.get("annotations"):
        metadata["annotations"] = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    return {**job, "metadata": metadata}


def _of_object(found: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    # The keys are those of `fields`, not the object's own strings of the same text.
    return {name: _of(found[name], how) for name, how in fields.items() if name in found}


def _of(value: Any, how: Leaf | dict[str, Any]) -> Any:
    if isinstance(value, str):
        return sys.intern(value) if how is COMMON else value
    if isinstance(how, Leaf) or value is None:
        return value
    if not isinstance(how, Each):
        return _of_object(value, how)
    each = [_of_object(one, how) for one in value]
    return [_alike(tuple(one.items())) for one in each] if how.alike else each


@lru_cache(maxsize=4096)
def _alike(items: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    """The one object of these fields."""
    return dict(items)


DEEPEST = 64
"""An API server stores templates of 10,000 levels. Whatever walks such a job (copies, checks, writes JSON) would raise
RecursionError; so what is too deep never gets in. Levels from the manifest on: a pod template has about 15."""
TOO_DEEP = {"nested": f"more than {DEEPEST} levels deep"}
"""What stands for a spec that is nested deeper."""
TOO_DEEP_MESSAGE = (
    f"spec is nested more than {DEEPEST} levels deep, which no pod is; delete the job, remove that part of its "
    "templates and apply it again"
)


def shallow(job: Manifest) -> Manifest:
    """The job, or where it is nested too deep, what of it is not: `TOO_DEEP` for its spec."""
    if not deeper_than(job, DEEPEST):
        return job
    # managedFields are as deep as what they speak of, and cut where a parser has cut them.
    metadata = {name: value for name, value in job["metadata"].items() if name != "managedFields"}
    instead = {"spec": dict(TOO_DEEP), "status": {}}
    too_deep = {name: other for name, other in instead.items() if deeper_than(job.get(name), DEEPEST - 1)}
    return {**job, "metadata": metadata, **too_deep}


def deeper_than(value: Any, levels: int) -> bool:
    """Whether objects and lists are nested in it more than so many levels deep; found without recursion."""
    layer = [value] if isinstance(value, (dict, list)) else []
    while layer and levels:
        inner = (more for one in layer for more in (one.values() if isinstance(one, dict) else one))
        layer, levels = [one for one in inner if isinstance(one, (dict, list))], levels - 1
    return bool(layer)
