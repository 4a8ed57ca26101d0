"""TFJob's, Job's and JobSet's words: what to write for each is a field that there is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dtjob.crd import other_words
from dtjob.crd.schema import spec_schema
from tests.refusals.other_words import OTHER_WORDS


def part(path: str) -> dict[str, Any] | None:
    """The schema at a dotted path below spec, None where it has no such field; `*` is any role."""
    found: dict[str, Any] | None = spec_schema()
    for name in path.removeprefix("spec.").split("."):
        found = ((found or {}).get("properties") or {}).get("worker" if name == "*" else name.removesuffix("[]"))
        if name.endswith("[]"):
            found = (found or {}).get("items")
    return found


@pytest.mark.parametrize("word", other_words._MENDS)
def test_a_word_is_no_field_of_ours_and_its_mend_is_one(word: str) -> None:
    assert part(word) is None
    mend = other_words._MENDS[word]
    for field in re.findall(r"\b(?:spec|runPolicy|failurePolicy|scheduling|replicas\.worker)\.\w+", mend):
        assert part(field), mend


def test_every_word_has_its_bad_manifest() -> None:
    tried = {
        re.sub(r"\[0\]", "[]", row.says[0].split('"')[1]).replace("replicas.worker.", "replicas.*.")
        for row in OTHER_WORDS
    }
    assert tried == set(other_words._MENDS)


@pytest.mark.parametrize("path", ["spec.replica", "spec.replicas.chief.counts", "spec", "", "spec.replicas.chief.a.b"])
def test_what_nobody_writes_is_left_to_what_was_probably_meant(path: str) -> None:
    assert other_words.instead(path) is None


def test_it_is_said_of_every_role_and_every_rule() -> None:
    assert other_words.instead("spec.replicas.evaluator.replicas") == "write count"
    assert other_words.instead("spec.failurePolicy.rules[17].targetReplicatedJobs") == "write roles"
