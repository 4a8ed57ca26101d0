# SPDX-License-Identifier: Apache-2.0
"""What a new definition breaks for users of an old one: fields and values are only ever added.

Rules in CEL are not compared: whether one is stricter than another cannot be told from its text.
"""

from collections.abc import Iterator
from typing import Any

from dtjob.crd.schema import INT_OR_STRING, LIST_KEYS, LIST_TYPE, PRESERVE, Schema

_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "minLength", "minItems", "minProperties")
_SAME = ("default", "pattern", "format", LIST_TYPE, LIST_KEYS)
"""What cannot be changed at all. A pattern may be left out, and a default may be added."""


def breaking_changes(old_crd: Schema, new_crd: Schema) -> list[str]:
    """Each change that breaks a stored job, a manifest or a reader of the status, in words; empty if there is none."""
    new_versions = {version["name"]: version for version in new_crd["spec"]["versions"]}
    found: list[str] = []
    for version in old_crd["spec"]["versions"]:
        new = new_versions.get(version["name"])
        if not version["served"]:
            continue
        if new is None or not new["served"]:
            found.append(f"{version['name']}: is no longer served")
            continue
        before, after = (one["schema"]["openAPIV3Schema"] for one in (version, new))
        found += (f"{version['name']}{path}: {said}" for path, said in _changes(before, after, ""))
    return found


def _changes(old: Schema, new: Schema, path: str) -> Iterator[tuple[str, str]]:
    if _type(old) != _type(new):
        yield path, f"the type {_type(old)} is now {_type(new)}"
        return
    yield from ((path, said) for said in (*_values(old, new), *_bounds(old, new), *_marks(old, new)))
    for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))):
        yield f"{path}.{name}", "is now required"
    parts, further = new.get("properties", {}), new.get("additionalProperties")
    for name, part in old.get("properties", {}).items():
        if name in parts:
            yield from _changes(part, parts[name], f"{path}.{name}")
        elif not (new.get(PRESERVE) or further):
            yield f"{path}.{name}", "is removed"
    for inner, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(old.get(inner), dict) and isinstance(new.get(inner), dict):
            yield from _changes(old[inner], new[inner], f"{path}{mark}")


def _type(schema: Schema) -> str:
    return "integer or string" if schema.get(INT_OR_STRING) else str(schema.get("type", "any"))


def _values(old: Schema, new: Schema) -> Iterator[str]:
    if "enum" not in new:
        return
    if "enum" not in old:
        yield "only some values are allowed now"
        return
    for value in old["enum"]:
        if value not in new["enum"]:
            yield f"the value {value} is removed"


def _bounds(old: Schema, new: Schema) -> Iterator[str]:
    for bounds, sign in ((_UPPER, 1), (_LOWER, -1)):
        for bound in bounds:
            before, after = old.get(bound), new.get(bound)
            if after is not None and (before is None or sign * after < sign * before):
                yield f"{bound} {'is now' if before is None else f'{before} is now'} {after}"


def _marks(old: Schema, new: Schema) -> Iterator[str]:
    for mark in _SAME:
        before, after = old.get(mark), new.get(mark)
        may_go, may_come = mark == "pattern", mark == "default"
        if before == after or (after is None and may_go) or (before is None and may_come):
            continue
        yield f"{mark} {_shown(before)} is now {_shown(after)}"
    if old.get(PRESERVE) and not new.get(PRESERVE):
        yield "further fields are removed now"
    if old.get("nullable") and not new.get("nullable"):
        yield "null is not allowed any more"


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)
