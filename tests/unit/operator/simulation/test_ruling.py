# SPDX-License-Identifier: Apache-2.0
"""What the check of rules says of a plan that corrects one incident and begins the next."""

from copy import deepcopy
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.simulation import plans
from tests.unit.operator.simulation.life.machine import Life
from tests.unit.operator.simulation.operator import World
from tests.unit.operator.simulation.ruling import check_rules

CHIEF, LOST = "digits-chief-0-1", "digits-worker-0-0"
CAUSES = {"Error": 1, "Disruption": 1}


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Job, Children, Any, Any]]:
    """The plans of a life in which a node is lost and the peers of its pod fail. The chief then fails by itself. No
    status can be written until the pod counts as lost."""
    seen: list[tuple[Job, Children, Any, Any]] = []
    monkeypatch.setattr(plans, "check_rules", lambda *arguments: seen.append(deepcopy(arguments)))
    life = Life()
    with World(builders.job(program=False, failurePolicy={"rules": []}), strict=True) as life.world:
        life.world.run(1)
        life.all_run()
        life.world.run(1)
        life.world.cluster.rules.accounts.unseen.add(builders.JOB_UID)
        life.world.cluster.lost.add(life.world.pods[LOST]["metadata"]["uid"])
        for name in life.answering():
            life.set_status(name, builders.ended(1, life.world.now()))
        life.world.run(5)
        life.refuse("write status", down=True)
        life.blame(CHIEF, "Error")
        life.set_status(CHIEF, builders.ended(1, life.world.now()))
        life.world.run(120)
        life.world.cluster.refusing.clear()
        life.world.run(60)
    return seen


def test_a_plan_may_give_a_charge_back_and_charge_the_next_failure(
    planned: list[tuple[Job, Children, Any, Any]],
) -> None:
    job, children, before, after = next(one for one in planned if one[3].get("restarts", {}).get("causes") == CAUSES)
    assert [one["internal"]["incident"]["charged"] for one in (before, after)] == [1, 1]
    check_rules(job, children, before, after)
    for unjust in (0, 2):
        after["internal"]["incident"]["charged"] = unjust
        with pytest.raises(AssertionError, match="became"):
            check_rules(job, children, before, after)


def test_the_cause_of_an_incident_may_be_corrected_after_its_counts_were_removed(
    planned: list[tuple[Job, Children, Any, Any]],
) -> None:
    job, children, _, after = next(one for one in planned if one[3].get("restarts", {}).get("causes") == {"Error": 1})
    before = deepcopy(after)
    before["internal"]["incident"]["cause"] = "Other"
    del before["restarts"]
    check_rules(job, children, before, after)
    before["internal"]["incident"]["number"] += 1
    with pytest.raises(AssertionError, match="became"):
        check_rules(job, children, before, after)
