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


def too_long(text: str) -> list[str]:
    """The sentences with too many words."""
    return [sentence for sentence in _SENTENCE_END.split(text) if words(sentence) > MOST_WORDS]


def begins_small(text: str) -> bool:
    """Whether a sentence begins with a small letter, and not with a value of the field or our own name."""
    return any(
        sentence[:1].islower() and not _NAMED_VALUE.match(sentence) and not sentence.startswith("dtjob ")
        for sentence in _SENTENCE_END.split(text)
    )


PARTS = pytest.mark.parametrize("part", ["apiVersion", "kind", "spec", "status"])


@PARTS
def test_every_field_is_described(part: str) -> None:
    assert [path for path, text in described(part) if not text] == []


@PARTS
def test_every_description_is_short(part: str) -> None:
    long = {path: words(text) for path, text in described(part) if text and words(text) > MOST_OF_A_FIELD}
    assert long == {}


@PARTS
def test_every_sentence_is_short(part: str) -> None:
    found = ((path, sentence) for path, text in described(part) for sentence in too_long(text or ""))
    assert sorted(set(found)) == []


@PARTS
def test_every_description_ends_with_a_full_stop(part: str) -> None:
    assert [(path, text) for path, text in described(part) if text and not text.endswith(".")] == []


@PARTS
def test_every_sentence_begins_with_a_capital(part: str) -> None:
    assert [(path, text) for path, text in described(part) if begins_small(text or "")] == []


def test_every_default_is_described() -> None:
    for path, schema in fields(definition.schema()["properties"]["spec"], "spec"):
        default = schema.get("default")
        if default is None or isinstance(default, dict):
            continue
        said = default if isinstance(default, str) else json.dumps(default)
        assert re.search(rf"Defaults to \"?{said}\"?\.|\b{said} \(the default\)", schema["description"]), path


def test_the_checks_of_descriptions_find_each_kind_of_bad_description() -> None:
    schema = {
        "properties": {
            "a": {"description": "true: it runs. Otherwise it waits."},
            "b": {"type": "array", "items": {"properties": {"c": {"description": "of a thing"}}}},
            "volume": {"description": "A volume.", "properties": {"nfs": {"properties": {"readOnly": {}}}}},
        }
    }
    found = dict(descriptions(schema, "x"))
    assert [path for path, text in found.items() if not text] == ["x.b", "x.b[]", "x.volume.nfs.readOnly"]
    assert [path for path, text in found.items() if begins_small(text or "")] == ["x.b[].c"]
    assert too_long(f"One. {'word ' * MOST_WORDS}more. Example: a.") == [f"{'word ' * MOST_WORDS}more."]
    assert too_long(f"{'word ' * (MOST_WORDS - 1)}last. Example: a.") == []


def test_the_kind_says_first_that_it_is_for_tensorflow() -> None:
    assert definition.schema()["description"].startswith("TensorFlow ")
