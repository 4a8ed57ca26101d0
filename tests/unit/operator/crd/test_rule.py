# SPDX-License-Identifier: Apache-2.0
"""One rule: the places that it is about, and when it is asked."""

import re

import pytest

from dtjob.api.spec.checkpoint import Checkpoint
from dtjob.crd.rule import CHANGEABLE, Rule, default_of, is_settled, values_at
from dtjob.crd.rules.changes import CHANGE_RULES
from dtjob.crd.rules.registry import RULES


def test_values_at_finds_every_place_of_a_rule() -> None:
    manifest = {"a": {"x": {"l": [{"b": 1}, {"b": 2}]}, "y": {"l": []}, "z": None}}
    assert list(values_at(manifest, "a.*.l[].b")) == [("a.x.l[0].b", 1), ("a.x.l[1].b", 2)]
    assert list(values_at(manifest, "")) == [("", manifest)]


def test_the_default_of_a_field_is_as_in_json() -> None:
    fields = ("writeMode", "maxToKeep", "everySteps")
    assert [repr(default_of(Checkpoint, field)) for field in fields] == ["'Async'", "3", "None"]


@pytest.mark.parametrize(
    ("cel", "at_creation", "only_at_creation"),
    [("has(self.suspend)", False, False), ("has(self.suspend)", True, True), ("has(self.image)", False, True)],
)
def test_a_rule_on_what_cannot_change_is_for_creation(cel: str, at_creation: bool, only_at_creation: bool) -> None:
    rule = Rule("spec", cel, "add it", at_creation=at_creation)
    assert rule.is_for_creation is only_at_creation


def test_the_fields_that_a_frame_reads_count_as_read_by_its_rule() -> None:
    rule = Rule("spec", "has(self.image)", "add it", frame="!has(self.suspend) || {}")
    assert rule.whole == "!has(self.suspend) || has(self.image)"
    assert not rule.is_for_creation


def test_the_message_names_a_part_of_the_value() -> None:
    rule = Rule("spec.a[]", "has(self.b)", "container {} has no b: add it", names="name")
    assert rule.said_of({"name": "log"}) == "container log has no b: add it"


SETTLED = [
    ("", "self.metadata.name.matches('^a$')"),
    ("spec", "has(self.program) || !(has(self.checkpoint) && has(self.checkpoint.everySteps))"),
    ("spec", "self.strategy != 'ParameterServer' || has(self.replicaSpecs.ps)"),
    ("spec.scheduling.gang", "!has(self.queue)"),
    ("spec.checkpoint.storage", "has(self.volume) != has(self.uri)"),
    ("spec.program", "self.entrypoint.matches('^a$')"),
    ("spec.program.env", "self.all(v, v.name != 'TF_CONFIG')"),
]
MAY_CHANGE = [
    *(("spec", f"!has(self.{name}) || has(self.image)") for name in CHANGEABLE),
    ("spec", "self.replicaSpecs.worker.replicas > 1"),
    ("spec", "has(self.image) || has(self.replicaSpecs.chief.template)"),  # while the job is suspended
    ("spec", "self.replicaSpecs.chief == self.replicaSpecs.ps"),
    ("spec", "[self.replicaSpecs].all(r, has(r.chief))"),
    ("", "[self.spec.replicaSpecs].all(r, size(self.metadata.name) + r.worker.replicas <= 60)"),
    ("spec.replicaSpecs", "has(self.any)"),
    ("spec.replicaSpecs.*", "!has(self.resources)"),
    ("spec.replicaSpecs.chief.template.spec", "!has(self.hostname)"),
    ("spec.failurePolicy.rules[]", "self.action != 'LeaveFailed'"),
]


@pytest.mark.parametrize(("at", "cel"), SETTLED)
def test_a_rule_that_reads_only_unchangeable_fields_is_settled(at: str, cel: str) -> None:
    assert is_settled(at, cel)


@pytest.mark.parametrize(("at", "cel"), MAY_CHANGE)
def test_a_rule_that_reads_a_changeable_field_is_not_settled(at: str, cel: str) -> None:
    assert not is_settled(at, cel)


def test_the_fields_of_settled_rules_cannot_change() -> None:
    """A field that becomes changeable, or changeable in part, takes the rules that read it along."""
    wholly = {rule.field for rule in CHANGE_RULES if rule.at == "spec"}
    settled = [rule for rule in RULES if is_settled(rule.at, rule.whole)]
    assert len(settled) > 30
    for rule in settled:
        paths = re.findall(r"\bself((?:\.\w+)*)", rule.whole)
        reads = {".".join(filter(None, (rule.at, path.lstrip(".")))) for path in paths}
        tops = {path.removeprefix("spec.").split(".")[0] for path in reads}
        assert tops <= wholly | {"metadata", "replicaSpecs"}, rule.message
        for path in reads:
            assert not path.startswith("spec.replicaSpecs") or re.fullmatch(r"spec\.replicaSpecs\.\w+", path), (
                rule.message
            )
