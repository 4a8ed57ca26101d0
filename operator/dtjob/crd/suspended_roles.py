# SPDX-License-Identifier: Apache-2.0
"""What of `spec.replicaSpecs` may change: the number of elastic workers at any time; and while a job is suspended where
its pods go and what they get, as for a Job.

A suspended job has no pods, and all are made anew when it goes on; so its scheduling may be decided late, as Kueue
does. How many pods other roles have and what runs in them stays, suspended or not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.rule import Unchanging
from dtjob.crd.schema import spec_schema

MAY_CHANGE = ("template", "resources")
"""Fields of a role that may change then, a template but for what follows."""
OF_A_CONTAINER = ("image", "command", "args", "env")
"""What stays of each container of a template, and so does their number."""
SIZE = "replicas"
"""The field of the workers that may change at any time if the job has an elasticPolicy."""
_SIZE_CAN_CHANGE = "worker.replicas can only if elasticPolicy is set"
_CAN_CHANGE = "while a job is suspended, its templates' scheduling, labels, annotations and resources can"


@dataclass(frozen=True)
class UnchangingRoles(Unchanging):
    """`spec.replicaSpecs`, of which a suspended job may change a part."""

    @property
    def message(self) -> str:
        """What the API server and `problems` say."""
        return f"{super().message}; {_CAN_CHANGE}; {_SIZE_CAN_CHANGE}"

    def validations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What stays at all times, for each role, and the whole where the job is not suspended: that rule stands at the
        root, as only there the status is seen."""
        entry = {name: value for name, value in self.validation().items() if name != "fieldPath"}
        always = entry | {"message": super().message}
        same_roles = " && ".join(f"has(self.{role.value}) == has(oldSelf.{role.value})" for role in Role)
        yield "spec.replicaSpecs", always | {"rule": same_roles}
        for role in Role:
            yield f"spec.replicaSpecs.{role.value}", always | {"rule": _same_role(role)}
        yield "", entry | {"rule": _same_or_may_change(), "fieldPath": f".spec.{self.field}"}


_SUSPENDED = (
    "has(oldSelf.spec.suspend) && oldSelf.spec.suspend && (!has(oldSelf.status) || !has(oldSelf.status.startTime) || "
    f"has(oldSelf.status.phase) && oldSelf.status.phase == '{Phase.SUSPENDED.value}')"
)
"""It was to be suspended, and has never started or its pods were told to end: no pod of the old template is kept."""


def _same_role(role: Role) -> str:
    """CEL: what stays of one role is the same."""
    fields = spec_schema()["properties"]["replicaSpecs"]["properties"][role.value]["properties"]
    free = (*MAY_CHANGE, SIZE) if role is Role.WORKER else MAY_CHANGE
    parts = [_same("self", "oldSelf", name, "default" not in fields[name]) for name in fields if name not in free]
    return f"self == oldSelf || ({' && '.join([*parts, _same_containers()])})"


def _same_or_may_change() -> str:
    """CEL at the root: nothing differs; or the number of workers may, and so may the rest."""
    new, old = "self.spec.replicaSpecs", "oldSelf.spec.replicaSpecs"
    workers = " || ".join(f"!has({one}.{Role.WORKER.value})" for one in (new, old))
    size = f"{new}.{Role.WORKER.value}.{SIZE} == {old}.{Role.WORKER.value}.{SIZE}"
    may_size = f"has(self.spec.elasticPolicy) || {workers} || {size}"
    return f"{new} == {old} || ({may_size}) && ({_SUSPENDED} || {_same_but_size(new, old)})"


def _same_but_size(new: str, old: str) -> str:
    """CEL: nothing differs but the number of workers; that there are the same roles is known."""
    others = [_same(new, old, role.value, True) for role in Role if role is not Role.WORKER]
    new, old = f"{new}.{Role.WORKER.value}", f"{old}.{Role.WORKER.value}"
    parts = " && ".join(_same(new, old, name, True) for name in MAY_CHANGE)
    return " && ".join([*others, f"(!has({new}) || !has({old}) || {parts})"])


def _same(new: str, old: str, name: str, optional: bool) -> str:
    same = f"{new}.{name} == {old}.{name}"
    return f"(has({new}.{name}) ? has({old}.{name}) && {same} : !has({old}.{name}))" if optional else same


def _same_containers() -> str:
    new, old = (f"{one}.template.spec.containers" for one in ("self", "oldSelf"))
    has_new, has_old = (
        f"(has({one}.template) && has({one}.template.spec) && has({one}.template.spec.containers))"
        for one in ("self", "oldSelf")
    )
    fields = " && ".join(_same("c", "o", one, True) for one in OF_A_CONTAINER)
    same = f"{new}.size() == {old}.size() && {new}.all(c, {old}.exists(o, o.name == c.name && {fields}))"
    return f"{has_new} == {has_old} && (!{has_new} || {same})"
