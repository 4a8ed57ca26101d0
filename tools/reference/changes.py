# SPDX-License-Identifier: Apache-2.0
"""Which fields of a job may change after it is created, in the words of the reference page."""

from collections.abc import Iterable

from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import CHANGEABLE
from dtjob.crd.rules.changes import MAY_CHANGE, OF_A_CONTAINER, SIZE

Path = tuple[str, ...]
"""Names from the spec to a field, without marks of lists: `("replicaSpecs", "ps", "template")`."""

YES, NO = "yes", "no"
ELASTIC = "if `elasticPolicy` is set"
SUSPENDED = "while suspended"
PARTLY_SUSPENDED = "in part, while suspended"
PARTLY = "in part"
_CONTAINERS = ("template", "spec", "containers")


def may_change(path: Path) -> str:
    """When the field at this path of the spec may change."""
    match path:
        case ("replicaSpecs",) | ("replicaSpecs", _):
            return PARTLY
        case ("replicaSpecs", role, field, *_):
            return _of_role(role, field, path[2:])
        case _:
            return YES if path[0] in CHANGEABLE else NO


def _of_role(role: str, field: str, path: Path) -> str:
    if field == SIZE:
        return {Role.WORKER.value: ELASTIC, Role.DATA.value: YES}.get(role, NO)
    if field not in MAY_CHANGE:
        return NO
    if path == _CONTAINERS[: len(path)]:
        return PARTLY_SUSPENDED
    if path[:3] == _CONTAINERS and path[3] in ("name", *OF_A_CONTAINER):
        return NO
    return SUSPENDED


def may_change_at(paths: Iterable[Path]) -> str:
    """The same of a field that stands at several paths, where it may differ."""
    found = {may_change(path): path for path in paths}
    if found.keys() == {NO, SUSPENDED} and "initContainers" in found[SUSPENDED]:
        return f"{NO}; of `initContainers`, {SUSPENDED}"
    if found.keys() == {NO, YES} and found[YES][:1] == ("replicaSpecs",):
        return f"{NO}; of `{found[YES][1]}`, {YES}"
    return "; ".join(found)
