"""One rule: the places that it speaks of, and its entry in the CRD."""

from __future__ import annotations

import pytest

from dtjob.crd.rule import Reason, Rule, Unchanging, values_at


def test_values_at_finds_every_place_of_a_rule() -> None:
    manifest = {"a": {"x": {"l": [{"b": 1}, {"b": 2}]}, "y": {"l": []}, "z": None}}
    assert list(values_at(manifest, "a.*.l[].b")) == [("a.x.l[0].b", 1), ("a.x.l[1].b", 2)]
    assert list(values_at(manifest, "")) == [("", manifest)]


@pytest.mark.parametrize(
    ("field", "message", "path"),
    [
        ("replicaSpecs.ps", "remove it", {"fieldPath": ".replicaSpecs.ps"}),
        ("", "remove it", {}),
        ("metadata.name", "metadata.name: remove it", {}),  # which a fieldPath may not name
    ],
)
def test_a_rule_as_an_api_server_reads_it(field: str, message: str, path: dict[str, str]) -> None:
    rule = Rule("spec", "has(self.suspend)", lambda value: "suspend" in value, "remove it", field, Reason.FORBIDDEN)
    assert next(rule.validations()) == {
        "rule": "has(self.suspend)",
        "message": message,
        "reason": "FieldValueForbidden",
        **path,
    }


def test_an_optional_field_cannot_come_or_go_either() -> None:
    assert Unchanging("strategy", required=True).validation()["rule"] == "self.strategy == oldSelf.strategy"
    optional = Unchanging("image", required=False).validation()
    same = "has(self.image) ? has(oldSelf.image) && self.image == oldSelf.image : !has(oldSelf.image)"
    assert optional["rule"] == same
    assert optional["message"].startswith("image cannot be changed: delete the job")


def test_a_rule_at_creation_asks_nothing_of_a_change() -> None:
    rule = Rule("spec", "has(self.suspend)", lambda value: "suspend" in value, "add it", "suspend", at_creation=True)
    (made,) = rule.validations()
    assert (made["rule"], made["optionalOldSelf"]) == ("oldSelf.hasValue() || (has(self.suspend))", True)


def test_a_rule_on_what_cannot_change_asks_nothing_of_a_change() -> None:
    rule = Rule("spec", "has(self.image)", lambda value: "image" in value, "add it", "image")
    (made,) = rule.validations()
    assert (made["rule"], made["optionalOldSelf"]) == ("oldSelf.hasValue() || (has(self.image))", True)


def test_a_rule_at_creation_is_asked_again_where_what_it_reads_has_changed() -> None:
    rule = Rule("spec", "has(self.a.b)", lambda value: "b" in value["a"], "add it", "a", at_creation=True, reads="a")
    made, changed = rule.validations()
    assert made["optionalOldSelf"] is True
    same = "!(has(self.a)) || has(oldSelf.a) && self.a == oldSelf.a"
    assert (changed["rule"], "optionalOldSelf" in changed) == (f"{same} || (has(self.a.b))", False)


@pytest.mark.parametrize("there", ["failurePolicy", "replicaSpecs"])
def test_a_field_that_is_always_there_is_not_asked_for(there: str) -> None:
    rule = Rule("spec", "true", lambda _: True, "add it", "a", at_creation=True, reads=there)
    *_, changed = rule.validations()
    assert changed["rule"] == f"self.{there} == oldSelf.{there} || (true)"


def test_each_step_to_what_a_rule_reads_may_be_missing() -> None:
    rule = Rule("spec", "true", lambda _: True, "add it", "a", at_creation=True, reads="a.b")
    *_, changed = rule.validations()
    assert changed["rule"].startswith(
        "!(has(self.a) && has(self.a.b)) || has(oldSelf.a) && has(oldSelf.a.b) && self.a.b == oldSelf.a.b"
    )


def test_a_rule_that_names_a_part_of_the_value_says_it_in_both_forms() -> None:
    rule = Rule("spec.a[]", "has(self.b)", lambda one: "b" in one, "container {} has no b: add it", names="name")
    entry = next(rule.validations())
    assert entry["messageExpression"] == "'container ' + self.name + ' has no b: add it'"
    assert rule.said_of({"name": "log"}) == "container log has no b: add it"
