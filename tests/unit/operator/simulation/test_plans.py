# SPDX-License-Identifier: Apache-2.0
"""Of which tasks the operator must know that they have finished, also after somebody has forged the job's status."""

from collections.abc import Iterator

import pytest

from dtjob.api.job import Job
from dtjob.plan.actions import Plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.simulation.facts import attempt_of
from tests.unit.operator.simulation.life.machine import Life
from tests.unit.operator.simulation.life.outsiders import (
    FORGERIES,
    Forge,
    all_have_finished,
    budget_is_used_up,
    counts_are_gone,
    the_first_has_finished,
)
from tests.unit.operator.simulation.operator import World

POD = "digits-evaluator-0-0"
STILL_SAY_SO = (all_have_finished, budget_is_used_up, counts_are_gone)
"""Forgeries that leave in the status that the evaluator has finished."""
FOUND = "evaluator-0 had finished and is started anew"


@pytest.fixture
def life() -> Iterator[Life]:
    """A job that trains. Its evaluator has finished, as its status says, and the operator hears of nothing more."""
    life = Life()
    with World(builders.job(evaluator=True, failurePolicy={"rules": []}), strict=True) as life.world:
        life.world.run(1)
        life.all_run()
        life.world.run(1)
        life.finish(POD)
        life.world.run(1)
        life.world.lose_watch()
        yield life


def check(life: Life, job: Job, *, anew: bool) -> None:
    """The check of a plan for the job as it was read then. The plan starts the evaluator `anew`, or changes nothing."""
    bumped = builders.remembered({"evaluator-0": attempt_of(job.status, "evaluator-0") + 1})
    children = Children(tuple(life.world.pods.values()))
    life.world.cluster.plan_rules.check(job, children, Plan(status=bumped if anew else None))


@pytest.mark.parametrize("forge", STILL_SAY_SO)
def test_a_task_of_which_a_forged_status_says_so_stays_finished(life: Life, forge: Forge) -> None:
    life.world.cluster.remove("Pod", POD)
    life.forge("digits", forge)
    with pytest.raises(AssertionError, match=FOUND):
        check(life, life.world.job, anew=True)


@pytest.mark.parametrize("forge", [one for one in FORGERIES if one not in STILL_SAY_SO])
def test_a_finished_task_without_a_pod_is_forgotten_with_a_forged_status(life: Life, forge: Forge) -> None:
    life.world.cluster.remove("Pod", POD)
    with pytest.raises(AssertionError, match=FOUND):
        check(life, life.world.job, anew=True)
    life.forge("digits", forge)
    check(life, life.world.job, anew=True)


def test_a_task_whose_pod_has_been_seen_since_the_forgery_stays_finished(life: Life) -> None:
    life.forge("digits", the_first_has_finished)
    with pytest.raises(AssertionError, match=FOUND):
        check(life, life.world.job, anew=True)
    check(life, life.world.job, anew=False)
    life.world.cluster.remove("Pod", POD)
    with pytest.raises(AssertionError, match=FOUND):
        check(life, life.world.job, anew=True)


def test_a_plan_that_has_not_heard_of_the_forgery_writes_nothing_down(life: Life) -> None:
    before = life.world.job
    life.forge("digits", the_first_has_finished)
    check(life, before, anew=False)
    life.world.cluster.remove("Pod", POD)
    check(life, life.world.job, anew=True)
