# SPDX-License-Identifier: Apache-2.0
"""Each field is described in short plain sentences, as `kubectl explain` and the reference page print them."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from dtjob.api.spec.volume_sources import VOLUME_SOURCES
from dtjob.crd import definition
from tests.unit.test_plain_english import MOST_WORDS, words

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_NAMED_VALUE = re.compile(r"^[a-z]\w*: ")
"""A description may begin with a value of the field and a colon, such as `true: the job saves`."""

MOST_OF_A_FIELD = 40
"""Words of one description: two or three sentences. Anything more stands on the pages."""

Described = tuple[str, str | None]


def descriptions(schema: dict[str, Any], path: str) -> Iterator[Described]:
    """Each field below this schema, each kind of entry, and what is said of it; None: nothing."""
    for name, part in schema.get("properties", {}).items():
        if path.endswith(".volume") and name in VOLUME_SOURCES:
            yield from descriptions(part, f"{path}.{name}")  # Kubernetes describes its sources
            continue
        yield f"{path}.{name}", part.get("description")
        yield from descriptions(part, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        part = schema.get(inner)
        if isinstance(part, dict):
            if "properties" in part:
                yield f"{path}[]", part.get("description")
            yield from descriptions(part, f"{path}[]")


def fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field below this schema."""
    for name, part in schema.get("properties", {}).items():
        yield f"{path}.{name}", part
        yield from fields(part, f"{path}.{name}")
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            yield from fields(schema[inner], f"{path}[]")


def described(part: str) -> list[Described]:
    """All that is said of this part of a job."""
    schema = definition.schema()["properties"][part]
    return [(part, schema.get("description")), *descriptions(schema, part)]


def faults(text: str | None) -> list[str]:
    """What is wrong with a description."""
    if not text:
        return ["is missing"]
    sentences = _SENTENCE_END.split(text)
    found = [f"is too long: {one}" for one in sentences if words(one) > MOST_WORDS]
    found += [
        f"begins small: {one}"  # and not with a value of the field or our own name
        for one in sentences
        if one[:1].islower() and not _NAMED_VALUE.match(one) and not one.startswith("dtjob ")
    ]
    found += [] if words(text) <= MOST_OF_A_FIELD else ["is too long as a whole"]
    return found if text.endswith(".") else [*found, "has no full stop"]


@pytest.mark.parametrize("part", ["apiVersion", "kind", "spec", "status"])
def test_every_field_is_described_in_short_sentences(part: str) -> None:
    assert {path: wrong for path, text in described(part) if (wrong := faults(text))} == {}


def test_every_default_is_described() -> None:
    for path, schema in fields(definition.schema()["properties"]["spec"], "spec"):
        default = schema.get("default")
        if default is None or isinstance(default, dict):
            continue
        said = default if isinstance(default, str) else json.dumps(default)
        assert re.search(rf"Defaults to \"?{said}\"?\.|\b{said} \(the default\)", schema["description"]), path
