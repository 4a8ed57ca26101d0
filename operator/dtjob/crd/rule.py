# SPDX-License-Identifier: Apache-2.0
"""One rule about a job: in CEL, which the API server evaluates, and `dtjob validate` too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dtjob.api.block import Block
from dtjob.crd import cel
from dtjob.crd.settled import is_settled

Value = Any
"""A part of a manifest as plain JSON."""


def default_of(block: type[Block], name: str) -> Any:
    """What this field of the block is, as JSON, if a manifest leaves it out. It makes no block, which takes time."""
    default = next(field for field in block.model_fields.values() if field.alias == name).default
    return default.value if isinstance(default, StrEnum) else default


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
    reason are one entry of the definition (`entries.py`).

    An API server checks a job's rules at each write of its status, also if nothing of the spec has changed. So a rule
    that reads only what cannot change later is asked when a job is created and never again (`settled.py`).
    `at_creation`: whether that is so of another rule, for a reason that `settled.py` cannot see.
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
    def is_for_creation(self) -> bool:
        """Whether the API server asks it only when a job is created."""
        return self.at_creation or is_settled(self.at, self.whole)


@dataclass(frozen=True)
class Unchanging:
    """A field of the spec that cannot be changed while the job exists: a rule on its change, beside `Rule`."""

    field: str
    required: bool

    @property
    def message(self) -> str:
        """What the API server and `problems` say."""
        return f"{self.field} cannot be changed: delete the job and create it again with the new value"

    def validation(self) -> dict[str, str]:
        """The rule as an entry of x-kubernetes-validations of `spec`."""
        new, old = f"self.{self.field}", f"oldSelf.{self.field}"
        cel = f"{new} == {old}"
        if not self.required:
            cel = f"has({new}) ? has({old}) && {cel} : !has({old})"
        return {"rule": cel, "message": self.message, "reason": Reason.FORBIDDEN.value, "fieldPath": f".{self.field}"}

    def validations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """All rules on the field's change, each with the path at which it stands."""
        yield "spec", self.validation()


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
