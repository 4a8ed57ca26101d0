# SPDX-License-Identifier: Apache-2.0
"""What the checks say of the cause that a status names."""

from collections.abc import Iterator

import pytest

from dtjob.plan.record.failure import Cause
from tests.unit.operator import builders
from tests.unit.operator.simulation.life.machine import Life
from tests.unit.operator.simulation.operator import World

POD, RULE = "digits-worker-0-0", {"action": "RestartAndIgnoreMaxRestarts", "onReasons": ["ErrImagePull"]}
JOB = builders.job("MultiWorkerMirrored", workers=1, chief=False, failurePolicy={"rules": [RULE]})


@pytest.fixture
def life() -> Iterator[Life]:
    """A job whose pods are restarted where they cannot start."""
    life = Life()
    with World(JOB, strict=True) as life.world:
        life.world.run(1)
        yield life


def dies_of_a_signal(life: Life, said: Cause) -> None:
    """And the check knows this cause."""
    life.blame(POD, said)
    life.set_status(POD, builders.ended(134, life.world.now(), signal=6))


def test_a_pod_may_die_after_a_plan_saw_that_it_cannot_start(life: Life) -> None:
    life.set_status(POD, builders.waiting("ErrImagePull"))
    life.world.run(0.12)  # the plan is made before the death is heard of, and its status is written after that
    dies_of_a_signal(life, Cause.SIGNAL)
    life.world.run(1)
    assert life.world.job_status()["lastFailure"]["cause"] == Cause.NOT_STARTED


def test_a_death_that_a_plan_saw_has_its_own_cause(life: Life) -> None:
    life.set_status(POD, builders.waiting("ContainerCreating"))
    life.world.run(1)
    dies_of_a_signal(life, Cause.ERROR)
    with pytest.raises(AssertionError, match="died of Error, not of Signal"):
        life.world.run(1)
