# SPDX-License-Identifier: Apache-2.0
"""Rules as entries of the definition: which of them share one, and what it says."""

from __future__ import annotations

import dataclasses

import pytest

from dtjob.crd.entries import entries
from dtjob.crd.rule import Reason, Rule

FRAME = "!has(self.suspend) || {}"
ONE = Rule("spec", "a", "add a", "x.y.a", frame=FRAME)
OTHER = Rule("spec", "b", 'say "b"', "x.y.b.c", frame=FRAME)


@pytest.mark.parametrize(
    ("field", "message", "path"),
    [
        ("replicaSpecs.ps", "remove it", {"fieldPath": ".replicaSpecs.ps"}),
        ("", "remove it", {}),
        ("metadata.name", "metadata.name: remove it", {}),  # which a fieldPath may not name
    ],
)
def test_a_rule_without_a_frame_has_its_own_entry(field: str, message: str, path: dict[str, str]) -> None:
    rule = Rule("spec", "has(self.suspend)", "remove it", field, Reason.FORBIDDEN)
    entry = {"rule": "has(self.suspend)", "message": message, "reason": "FieldValueForbidden", **path}
    other = dataclasses.replace(rule, at="spec.failurePolicy")
    assert list(entries([rule, other])) == [("spec", entry), ("spec.failurePolicy", entry)]


def test_a_rule_for_creation_asks_nothing_of_a_change() -> None:
    ((_, made),) = entries([Rule("spec", "has(self.image)", "add it", "image")])
    assert (made["rule"], made["optionalOldSelf"]) == ("oldSelf.hasValue() || (has(self.image))", True)


def test_a_rule_that_names_a_part_of_the_value_reads_it() -> None:
    rule = Rule("spec.a[]", "has(self.b)", "container {} has no b: add it", names="name")
    ((_, entry),) = entries([rule])
    assert entry["message"] == "container … has no b: add it"
    assert entry["messageExpression"] == '"container " + self.name + " has no b: add it"'


def test_rules_of_one_frame_share_an_entry_at_the_path_that_they_share() -> None:
    ((at, entry),) = entries([ONE, OTHER])
    assert (at, entry["fieldPath"]) == ("spec", ".x.y")
    assert entry["rule"] == "!has(self.suspend) || ((a) && (b))"


def test_the_first_broken_rule_is_said() -> None:
    ((_, entry),) = entries([ONE, OTHER])
    assert entry["message"] == "add a"
    assert entry["messageExpression"] == '!(!has(self.suspend) || a) ? "add a" : "say \\"b\\""'


@pytest.mark.parametrize(
    "change",
    [
        {"frame": "has(self.suspend) || {}"},
        {"at": "spec.failurePolicy"},
        {"reason": Reason.REQUIRED},
        {"at_creation": True},
    ],
)
def test_rules_that_differ_in_more_than_their_field_share_no_entry(change: dict[str, object]) -> None:
    made = list(entries([ONE, dataclasses.replace(OTHER, **change)]))  # type: ignore[arg-type]
    assert [entry["fieldPath"] for _, entry in made] == [".x.y.a", ".x.y.b.c"]
    assert all("messageExpression" not in entry for _, entry in made)
