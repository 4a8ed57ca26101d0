# SPDX-License-Identifier: Apache-2.0
"""One rule about a job: in CEL, which the API server evaluates, and `dtjob validate` too.

An API server evaluates every rule at each write of a job's status. If a field of the spec is open, the API server
cannot tell that the spec is as it was. Each rule takes it 10 to 50 µs, since each look at a field copies the schemas of
all fields beside it. So what was settled when the job was created is asked then and never again.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dtjob.api.block import Block
from dtjob.api.spec.replica_specs import Role
from dtjob.crd import cel

CHANGEABLE = (
    *("failurePolicy", "elasticPolicy", "suspend", "cleanPodPolicy"),
    *("activeDeadlineSeconds", "startDeadlineSeconds", "ttlSecondsAfterFinished"),
)
"""Fields of the spec that may change while the job exists; all others are in the pods already, or say whose it is. Of
`replicaSpecs` a part may, at times."""

_READ = re.compile(r"(has\()?\bself\b((?:\.\w+)*)")
"""What CEL reads of the value that a rule is about, and whether only for its being there."""
_ROLES = frozenset(role.value for role in Role)


Path = tuple[str, ...]


def is_settled(at: str, cel: str) -> bool:
    """Whether nothing that this CEL reads of the value at the path `at` can change once the job exists."""
    return all(_cannot_change(path, only_there) for path, only_there in _reads(at, cel))


def _reads(at: str, cel: str) -> Iterator[tuple[Path, bool]]:
    """Each path that this CEL about the value at `at` reads, and whether only for its being there."""
    base = tuple(at.split(".")) if at else ()
    return (((*base, *path.split(".")[1:]), bool(has)) for has, path in _READ.findall(cel))


def _cannot_change(path: Path, only_there: bool) -> bool:
    """Whether what is at this path cannot change; `only_there`: whether it is read only for its being there."""
    match path:
        case ("metadata", "name", *_):
            return True
        case ("spec", "replicaSpecs", role):
            return only_there and role in _ROLES
        case ("spec", field, *_):
            return field not in (*CHANGEABLE, "replicaSpecs")
        case _:
            return False


Value = Any
"""A part of a manifest as plain JSON."""


def default_of(block: type[Block], name: str) -> Any:
    """What this field of the block is, as JSON, if a manifest leaves it out. It makes no block, which takes time."""
    default = next(field for field in block.model_fields.values() if field.alias == name).default
    return default.value if isinstance(default, StrEnum) else default


def quoted(text: str) -> str:
    """The text as CEL has it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


class Reason(StrEnum):
    """How the API server words a refusal (`spec.image: Required value: ...`)."""

    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    REQUIRED = "FieldValueRequired"


@dataclass(frozen=True)
class Rule:
    """What must hold for every value at `at`.

    `at` is a path such as `spec.checkpoint` or `spec.replicaSpecs.*.template.spec.containers[]`; `*` is any name and
    `[]` any item. `cel` is about the value there, with its defaults filled in. `message` says what is wrong and what to
    write instead; `field`, below `at`, is what it is about. `names` is a field of the value whose text replaces `{}` in
    the message.

    `frame` leads to what several rules ask about: CEL with `{}` where `cel` stands. Rules with one frame, place and
    reason are one entry of the definition (`definition.py`).

    A rule that reads only what cannot change later is asked when a job is created and never again (`is_settled`).
    `at_creation`: whether that is so of another rule, for a reason that `is_settled` cannot see. A rule that reads
    `oldSelf` is about a change, and is asked at each.
    """

    at: str
    cel: str
    message: str
    field: str = ""
    reason: Reason = Reason.INVALID
    at_creation: bool = False
    names: str = ""
    frame: str = "{}"

    def holds(self, value: Value) -> bool:
        """Whether it holds of this value, whose defaults are filled in. Of most values the frame alone says so."""
        variables = {"self": value}
        return cel.holds(self.frame.replace("{}", "false"), variables) or cel.holds(self.whole, variables)

    def said_of(self, value: Value) -> str:
        """The message about this value."""
        return self.message.format(value[self.names]) if self.names else self.message

    @property
    def whole(self) -> str:
        """The rule in CEL, with its frame."""
        return self.frame.replace("{}", self.cel)

    @property
    def reads(self) -> list[Path]:
        """The paths of a manifest that the rule reads. `*` is any name, and a name with `[]` is a list."""
        return [path for path, _ in _reads(self.at, self.whole)]

    @property
    def is_for_creation(self) -> bool:
        """Whether the API server asks it only when a job is created."""
        return self.at_creation or ("oldSelf" not in self.cel and is_settled(self.at, self.whole))


def values_at(manifest: Value, path: str) -> Iterator[tuple[str, Value]]:
    """Every value at a path with `*` and `[]`, with its own path: `spec.replicaSpecs.ps`, `spec.program.env[1]`."""
    yield from _descend(manifest, re.findall(r"[^.\[]+|\[\]", path), "")


def _descend(value: Value, steps: list[str], path: str) -> Iterator[tuple[str, Value]]:
    if not steps:
        yield path, value
        return
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for index, item in enumerate(value or []):
            yield from _descend(item, rest, f"{path}[{index}]")
        return
    for name in list(value or {}) if step == "*" else [step]:
        if value and value.get(name) is not None:
            yield from _descend(value[name], rest, f"{path}.{name}" if path else name)
