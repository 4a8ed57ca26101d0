# SPDX-License-Identifier: Apache-2.0
"""Rules on a change of a job: which fields of its spec stay as they are while it exists.

A part of `spec.replicaSpecs` may change. The numbers of elastic workers and of data workers may change at any time.
While a job is suspended, where its pods go and what they get may change, as for a Job. A suspended job has no pods, and
all are made anew when it goes on. So its scheduling may be decided late, as Kueue does. How many pods other roles have
and what runs in them stays, suspended or not.
"""

from collections.abc import Iterable, Iterator

from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import CHANGEABLE, Reason, Rule
from dtjob.crd.schema import spec_schema

MAY_CHANGE = ("template", "resources")
"""Fields of a role that may change while a job is suspended, a template but for what follows."""
OF_A_CONTAINER = ("image", "command", "args", "env")
"""What stays of each container of a template, and so does their number."""
SIZE = "replicas"
"""The field of the data workers that may change at any time; that of the workers, if the job has an elasticPolicy."""
_SIZED = (Role.WORKER, Role.DATA)
_ROLES = "replicaSpecs"
_CANNOT_CHANGE = "cannot be changed: delete the job and create it again with the new value"
_SIZE_CAN_CHANGE = "worker.replicas can only if elasticPolicy is set, and data.replicas always"
_CAN_CHANGE = "while a job is suspended, its templates' scheduling, labels, annotations and resources can"


def _unchanging() -> Iterator[Rule]:
    """A rule for each field of the spec that stays. That of the roles is at the root: only there the status is seen."""
    schema = spec_schema()
    for name, field in schema["properties"].items():
        if name == _ROLES:
            message = f"{name} {_CANNOT_CHANGE}; {_CAN_CHANGE}; {_SIZE_CAN_CHANGE}"
            yield Rule("", _same_or_may_change(), message, f"spec.{_ROLES}", Reason.FORBIDDEN)
        elif name not in CHANGEABLE:
            optional = name not in schema["required"] and "default" not in field
            same = _same("self", "oldSelf", name, optional)
            yield Rule("spec", same, f"{name} {_CANNOT_CHANGE}", name, Reason.FORBIDDEN)


_SUSPENDED = (
    "has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.startTime) || "
    f"has(oldSelf.status.phase) && oldSelf.status.phase == '{Phase.SUSPENDED.value}')"
)
"""CEL: whether no pod of the old template is kept. The job was to be suspended, and it has never started or its pods
were told to end."""


def _same_or_may_change() -> str:
    """CEL at the root: nothing differs; or the numbers of workers may, and so may what a suspended job may change."""
    new, old = "self.spec.replicaSpecs", "oldSelf.spec.replicaSpecs"
    workers = " || ".join(f"!has({one}.{Role.WORKER.value})" for one in (new, old))
    size = f"{new}.{Role.WORKER.value}.{SIZE} == {old}.{Role.WORKER.value}.{SIZE}"
    may_size = f"has(self.spec.elasticPolicy) || {workers} || {size}"
    same_roles = _all(f"has({new}.{role.value}) == has({old}.{role.value})" for role in Role)
    suspended = _all([_SUSPENDED, *(_same_role(role, new, old) for role in Role)])
    return f"{new} == {old} || ({may_size}) && {same_roles} && ({suspended} || {_same_but_size(new, old)})"


def _same_role(role: Role, new: str, old: str) -> str:
    """CEL: what stays of one role of a suspended job is the same; that there are the same roles is known."""
    fields = spec_schema()["properties"][_ROLES]["properties"][role.value]["properties"]
    free = (*MAY_CHANGE, SIZE) if role in _SIZED else MAY_CHANGE
    new, old = f"{new}.{role.value}", f"{old}.{role.value}"
    others = (_same(new, old, one, "default" not in fields[one]) for one in fields if one not in free)
    return f"(!has({new}) || {new} == {old} || {_all([*others, _same_containers(new, old)])})"


def _same_but_size(new: str, old: str) -> str:
    """CEL: nothing differs but the numbers of workers; that there are the same roles is known."""
    found = [_same(new, old, role.value) for role in Role if role not in _SIZED]
    for role in _SIZED:
        one, other = f"{new}.{role.value}", f"{old}.{role.value}"
        parts = _all(_same(one, other, name) for name in MAY_CHANGE)
        found.append(f"(!has({one}) || !has({other}) || {parts})")
    return _all(found)


def _same(new: str, old: str, name: str, optional: bool = True) -> str:
    same = f"{new}.{name} == {old}.{name}"
    return f"has({new}.{name}) ? has({old}.{name}) && {same} : !has({old}.{name})" if optional else same


def _all(parts: Iterable[str]) -> str:
    """CEL: all of these hold."""
    return " && ".join(f"({part})" if " ? " in part else part for part in parts)


def _same_containers(new: str, old: str) -> str:
    has_new, has_old = (
        f"(has({one}.template) && has({one}.template.spec) && has({one}.template.spec.containers))"
        for one in (new, old)
    )
    new, old = (f"{one}.template.spec.containers" for one in (new, old))
    fields = _all(_same("c", "o", one) for one in OF_A_CONTAINER)
    same = f"{new}.size() == {old}.size() && {new}.all(c, {old}.exists(o, o.name == c.name && {fields}))"
    return f"{has_new} == {has_old} && (!{has_new} || {same})"


CHANGE_RULES = tuple(_unchanging())
"""They read `oldSelf`, the value before the change."""
