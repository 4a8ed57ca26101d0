"""Which rules are asked of new jobs only, by what they read."""

from __future__ import annotations

import pytest

from dtjob.crd.rules import RULES, UNCHANGING
from dtjob.crd.settled import CHANGEABLE, is_settled

SETTLED = [
    ("", "self.metadata.name.matches('^a$')"),
    ("spec", "has(self.program) || !(has(self.checkpoint) && has(self.checkpoint.keep))"),
    ("spec", "self.strategy != 'ParameterServer' || has(self.replicas.ps)"),
    ("spec", "has(self.replicas.chief) && self.replicas.chief.count > 1"),
    ("spec.replicas", "!has(self.evaluator) || self.evaluator.count <= 1"),
    ("spec.program", "self.entry.matches('^a$')"),
    ("spec.scheduling.gang", "!has(self.queue)"),
    ("spec.program.env", "self.all(v, v.name != 'TF_CONFIG')"),
]
MAY_CHANGE = [
    *(("spec", f"!has(self.{name}) || has(self.image)") for name in CHANGEABLE),
    ("spec", "has(self.replicas.worker.min)"),  # elastic workers
    ("spec", "self.replicas.worker.count > 1"),
    ("spec", "has(self.image) || has(self.replicas.chief.template)"),  # while the job is suspended
    ("spec", "self.replicas.chief == self.replicas.ps"),
    ("spec", "[self.replicas].all(r, has(r.chief))"),
    ("", "[self.spec.replicas].all(r, size(self.metadata.name) + r.worker.count <= 60)"),
    ("spec.replicas", "has(self.any)"),
    ("spec.replicas.*", "!has(self.resources)"),
    ("spec.replicas.chief.template.spec", "!has(self.hostname)"),
    ("spec.failurePolicy.rules[]", "self.action != 'Ignore'"),
]


@pytest.mark.parametrize(("at", "cel"), SETTLED)
def test_what_cannot_change_is_settled(at: str, cel: str) -> None:
    assert is_settled(at, cel)


@pytest.mark.parametrize(("at", "cel"), MAY_CHANGE)
def test_what_may_change_is_not(at: str, cel: str) -> None:
    assert not is_settled(at, cel)


def test_the_fields_of_settled_rules_cannot_change() -> None:
    """A field that becomes changeable takes the rules that read it along."""
    fixed = {field.field for field in UNCHANGING} - {"replicas"}
    for rule in RULES:
        top = rule.at.split(".")[1] if "." in rule.at else None
        if top in fixed:
            assert is_settled(rule.at, rule.cel), rule.message
        if top in CHANGEABLE:
            assert not is_settled(rule.at, rule.cel), rule.message
