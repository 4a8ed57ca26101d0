# SPDX-License-Identifier: Apache-2.0
"""Which rules are asked of new jobs only, by what they read."""

from __future__ import annotations

import re

import pytest

from dtjob.crd.rule import Unchanging
from dtjob.crd.rules.registry import RULES, UNCHANGING
from dtjob.crd.settled import CHANGEABLE, is_settled

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
    wholly = {field.field for field in UNCHANGING if type(field) is Unchanging}
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
