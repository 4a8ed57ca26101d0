# SPDX-License-Identifier: Apache-2.0
"""What of a suspended job's roles may change, as an API server has it too (tests/cluster/test_suspension.py)."""

from typing import Any

import pytest

from tests.refusals.life import SUSPENDED, SUSPENDED_CHANGES, SUSPENDED_CHANGES_TAKEN
from tests.refusals.manifests import Bad
from tests.unit.operator.crd.changed import problems_of_change

ALONE = {**SUSPENDED, "spec": {**SUSPENDED["spec"], "suspend": False}}
RESOURCES = SUSPENDED_CHANGES_TAKEN["suspended-resources"]


@pytest.mark.parametrize("name", SUSPENDED_CHANGES_TAKEN)
def test_scheduling_and_resources_may_change(name: str) -> None:
    assert problems_of_change(SUSPENDED_CHANGES_TAKEN[name], SUSPENDED) == []


@pytest.mark.parametrize("row", SUSPENDED_CHANGES, ids=[row.name for row in SUSPENDED_CHANGES])
def test_other_changes_of_a_suspended_jobs_roles_are_refused(row: Bad) -> None:
    said = " | ".join(str(problem) for problem in problems_of_change(row.manifest, SUSPENDED))
    for part in row.says:
        assert part in said


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
