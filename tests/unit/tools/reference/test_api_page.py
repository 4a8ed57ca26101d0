# SPDX-License-Identifier: Apache-2.0
"""docs/reference/api.md has every field of the definition once, with all that is said of it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from dtjob.crd import definition
from tests.unit.test_links import _NO_ANCHOR
from tools.reference.api_page import HEADER, page
from tools.reference.sections import sections

PAGE = page()
LARGEST = 120 * 1024
"""Bytes that a reader's browser and an editor show without effort."""


def tables() -> dict[str, dict[str, list[str]]]:
    """The rows of each section by its anchor, and by the name in their first cell."""
    found: dict[str, dict[str, list[str]]] = {}
    for part in re.split(r"^#+ ", PAGE, flags=re.M)[1:]:
        title, _, text = part.partition("\n")
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in text.splitlines() if line.startswith("| `")]
        anchor = _NO_ANCHOR.sub("", title.lower()).replace(" ", "-")
        assert anchor not in found, title
        found[anchor] = {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in rows}
    return found


TABLES = tables()


def fields(schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Each field that we describe, at each of its places."""
    for name, part in schema.get("properties", {}).items():
        if part.get("description"):
            yield (*path, name), part
            for inner in (part, part.get("items"), part.get("additionalProperties")):
                if isinstance(inner, dict):
                    yield from fields(inner, (*path, name))


def place(path: tuple[str, ...]) -> list[str]:
    """The row of a field, found by following the links from the root as a reader does."""
    table = TABLES[path[0]]
    for name in path[1:-1]:
        link = re.search(r"\(#(.+)\)", table[name][0])
        assert link, f"{'.'.join(path)}: no link at {name}"
        table = TABLES[link[1]]
    return table[path[-1]]


@pytest.mark.parametrize("part", ["spec", "status"])
def test_every_field_is_found_with_its_description(part: str) -> None:
    found = 0
    for path, schema in fields(definition.schema()["properties"][part], (part,)):
        cells = place(path)
        assert cells[-1].replace("`", "") == schema["description"].replace("`", "").replace("|", "\\|"), path
        found += 1
    assert found > 50


def test_no_row_is_about_a_field_that_is_gone() -> None:
    for part in ("spec", "status"):
        schema = definition.schema()["properties"][part]
        names = {path[-1] for path, _ in fields(schema, (part,))}
        rows = {name for section in sections(schema, part) for name in TABLES[section.anchor]}
        assert rows == names


def test_the_page_says_that_it_is_generated_and_is_not_large() -> None:
    assert PAGE.startswith(f"{HEADER}\n")
    assert len(PAGE.encode()) < LARGEST
