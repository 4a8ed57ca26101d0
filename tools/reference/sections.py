# SPDX-License-Identifier: Apache-2.0
"""The blocks of a schema as sections of a page: each block once, even if it stands at several places."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dtjob.api.spec.replica_specs import Role
from dtjob.crd.schema import VALIDATIONS, Schema
from tools.reference.changes import Path

_NO_ANCHOR = re.compile(r"[^\w\- ]")


@dataclass
class Section:
    """A block: its title, its schema, and all paths at which it stands."""

    title: str
    schema: Schema
    paths: list[Path] = field(default_factory=list)
    also_at: list[str] = field(default_factory=list)
    """Titles of further places with the same fields, unless the title covers them."""
    links: dict[str, str] = field(default_factory=dict)
    """The anchor of the section of each of its fields that has one."""

    def is_shared(self) -> bool:
        """Whether it stands in the block of each role."""
        return ".*." in self.title

    @property
    def anchor(self) -> str:
        """What a link to the section names."""
        return _NO_ANCHOR.sub("", self.title.lower()).replace(" ", "-")


def sections(schema: Schema, title: str) -> list[Section]:
    """The sections of this block and of all in it, in the order of their fields. Those of all roles are last."""
    places: dict[str, list[Path]] = defaultdict(list)
    for path, block in _blocks(schema, ()):
        places[_identity(block)].append(path)
    found: dict[str, Section] = {}
    _collect(schema, title, places, found)
    return sorted(found.values(), key=Section.is_shared)


def inner(schema: Schema) -> tuple[str, Schema] | None:
    """The block of fields in this field and the mark of how it is in there; None if it has no fields."""
    for mark, block in (("", schema), ("[]", schema.get("items")), (".*", schema.get("additionalProperties"))):
        if isinstance(block, dict) and block.get("properties"):
            return mark, block
    return None


def is_described(schema: Schema) -> bool:
    """Whether we describe this field. Kubernetes describes the sources of volumes."""
    return bool(schema.get("description"))


def _blocks(schema: Schema, path: Path) -> Iterator[tuple[Path, Schema]]:
    """Each block with fields, at each of its places."""
    yield path, schema
    for name, part in schema["properties"].items():
        if is_described(part) and (found := inner(part)):
            yield from _blocks(found[1], (*path, name))


def _collect(schema: Schema, title: str, places: dict[str, list[Path]], found: dict[str, Section]) -> Section:
    """Add the section of this block, and then those of the blocks in it. Returns its section, which may be there."""
    identity = _identity(schema)
    if identity in found:
        section = found[identity]
        if title != section.title and not _covers(section.title, title):
            section.also_at.append(title)
        return section
    paths = places[identity]
    section = found[identity] = Section(_common(title, paths), schema, paths)
    for name, part in schema["properties"].items():
        if is_described(part) and (block := inner(part)):
            mark, below = block
            section.links[name] = _collect(below, f"{section.title}.{name}{mark}", places, found).anchor
    return section


def _common(title: str, paths: list[Path]) -> str:
    """The title with `*` in place of the role, if every role has this block at the same place."""
    first = paths[0]
    for position, name in enumerate(first[:-1]):
        alike = {_without(path, position) for path in paths} == {_without(first, position)}
        if alike and {path[position] for path in paths} == set(Role):
            return title.replace(f".{name}.", ".*.", 1)
    return title


def _without(path: Path, position: int) -> Path:
    return path[:position] + path[position + 1 :]


def _covers(pattern: str, title: str) -> bool:
    """Whether a title with `*` is about this place too."""
    escaped = re.escape(pattern).replace(r"\*", r"[^.]+")
    return re.fullmatch(escaped, title) is not None


def _identity(schema: Schema) -> str:
    """What two blocks have in common that are described once: all but their rules and their own description."""
    return json.dumps(_without_rules({name: part for name, part in schema.items() if name != "description"}))


def _without_rules(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_rules(part) for name, part in value.items() if name != VALIDATIONS}
    return [_without_rules(part) for part in value] if isinstance(value, list) else value
