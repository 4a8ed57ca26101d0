# SPDX-License-Identifier: Apache-2.0
"""What of a job may change. tests/cluster/test_suspension.py asks an API server the same of a suspended job's roles."""

import json
from typing import Any

import pytest

from dtjob.crd.rule import CHANGEABLE
from dtjob.crd.rules.changes import CHANGE_RULES
from tests.refusals.life import SUSPENDED, SUSPENDED_CHANGES_TAKEN
from tests.unit.operator.crd.changed import problems_of_change

ALONE = {**SUSPENDED, "spec": {**SUSPENDED["spec"], "suspend": False}}
RESOURCES = SUSPENDED_CHANGES_TAKEN["suspended-resources"]


def test_fields_that_are_in_the_pods_cannot_be_changed() -> None:
    rules = {rule.field: rule.cel for rule in CHANGE_RULES if rule.at == "spec"}
    assert not {*CHANGEABLE, "replicaSpecs"} & set(rules)
    # These an API server always has: given by the user, or filled in by default.
    required = {"strategy", "scheduling", "network", "successPolicy"}
    optional = {"image", "program", "strategyOptions", "checkpoint", "evaluation", "tensorBoard", "managedBy"}
    assert {name for name, cel in rules.items() if cel == f"self.{name} == oldSelf.{name}"} == required
    assert {name for name, cel in rules.items() if cel.startswith("has(")} == optional


def test_a_change_of_a_role_is_refused_once() -> None:
    """Whatever of it is refused, suspended or not."""
    changed = json.loads(json.dumps(RESOURCES))
    changed["spec"]["replicaSpecs"]["worker"]["template"]["spec"]["containers"][0]["image"] = "other:1"
    for old in (SUSPENDED, ALONE):
        assert [problem.field for problem in problems_of_change(changed, old)] == ["spec.replicaSpecs"]


@pytest.mark.parametrize(
    ("old", "status", "taken"),
    [
        (SUSPENDED, {}, True),
        (SUSPENDED, {"phase": "Suspended"}, True),
        (SUSPENDED, {"phase": "Suspended", "startTime": "2026-11-21T10:00:00Z"}, True),
        (SUSPENDED, {"phase": "Running", "startTime": "2026-11-21T10:00:00Z"}, False),  # its pods are still there
        (ALONE, {}, False),
        (ALONE, {"phase": "Suspended", "startTime": "2026-11-21T10:00:00Z"}, False),
    ],
)
def test_roles_may_change_only_once_the_pods_of_the_old_template_are_gone(old: Any, status: Any, taken: bool) -> None:
    found = problems_of_change(RESOURCES, {**old, "status": status})
    assert [problem.field for problem in found] == ([] if taken else ["spec.replicaSpecs"])
