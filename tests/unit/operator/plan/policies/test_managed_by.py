"""Whose a job is."""

from __future__ import annotations

import pytest

from dtjob.plan.actions import Plan
from dtjob.plan.children import Children
from dtjob.plan.plan import plan
from dtjob.plan.policies.managed_by import is_ours
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

ANOTHERS = "kueue.x-k8s.io/multikueue"


@pytest.mark.parametrize(
    ("spec", "ours"),
    [
        ({}, True),
        ({"managedBy": None}, True),
        ({"managedBy": "training.dtjob.dev/dtjob-controller"}, True),
        ({"managedBy": ANOTHERS}, False),
        ({"managedBy": ""}, False),
    ],
)
def test_it_is_ours_unless_it_names_another(spec: dict[str, str], ours: bool):
    assert is_ours(spec) is ours


def test_nothing_at_all_is_planned_for_anothers_job():
    job = builders.job(managedBy=ANOTHERS)
    failed = builders.pod(job, "chief-0", builders.ended(1))
    assert plan(job, Children((failed,)), NOW) == Plan()
    assert plan(builders.job(), Children((failed,)), NOW) != Plan()
