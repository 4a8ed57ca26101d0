# SPDX-License-Identifier: Apache-2.0
"""What the checks of deadlines let pass of a job whose status somebody has emptied, and what they find."""

from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from dtjob import times
from dtjob.api.job import KIND
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.facts import is_suspended
from tests.unit.operator.simulation.operator import World

FAILED = {"phase": "Failed", "reason": "DeadlineExceeded"}
SUSPENDED = {"conditions": [builders.condition("Suspended", reason="JobSuspended")]}


@pytest.fixture(params=[False, True], ids=["active", "suspended"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A job with a deadline of 113 s. It was active or suspended for 100 s, and its operator hears of nothing more."""
    with World(builders.job(activeDeadlineSeconds=113, suspend=request.param)) as world:
        world.run(100)
        world.lose_watch()
        yield world


def stored(world: World) -> Manifest:
    return world.cluster.objects[KIND, "digits"]


def empty(world: World) -> None:
    """Somebody takes all away that the status says."""
    before = deepcopy(stored(world)["status"])
    world.cluster.change(KIND, "digits", lambda one: one["status"].clear())
    world.cluster.lifetimes.is_forged(stored(world)["metadata"]["uid"], before, {})


def check(world: World, later: float, seconds: float | None, status: dict[str, Any] | None = None) -> None:
    """The check of a status so much later, which says that the job was active for so long. None: it never was."""
    now = world.now() + timedelta(seconds=later)
    active = {} if seconds is None else {"active": {"since": times.rfc3339(now - timedelta(seconds=seconds))}}
    world.cluster.lifetimes.check_status(stored(world), {**(status or {}), **active}, now)


def test_the_time_of_an_emptied_status_begins_with_what_the_next_one_says(world: World) -> None:
    empty(world)
    check(world, 50, None, SUSPENDED)
    check(world, 51, 13)
    check(world, 210, 172)
    with pytest.raises(AssertionError, match=r"active for 0:03:02.\d+ of 113 s"):
        check(world, 220, 13)


def test_a_job_of_an_emptied_status_is_cut_off_by_that_time_alone(world: World) -> None:
    empty(world)
    check(world, 1, 13)
    with pytest.raises(AssertionError, match=r"cut off after 0:01:33.\d+ of 113 s"):
        check(world, 81, 113, FAILED)
    check(world, 101, 113, FAILED)


def test_no_status_says_that_a_job_was_active_for_longer_than_it_is_there(world: World) -> None:
    empty(world)
    with pytest.raises(AssertionError, match=r"active for 0:01:45.\d+, and there for 0:01:41"):
        check(world, 1, 105)


def test_a_forgery_of_anything_else_takes_no_time_away(world: World) -> None:
    status = stored(world)["status"]
    world.cluster.lifetimes.is_forged(stored(world)["metadata"]["uid"], status, {**status, "restarts": {}})
    counted = "0:00:00" if is_suspended(status) else "0:01:50"
    with pytest.raises(AssertionError, match=f"cut off after {counted}"):
        check(world, 10.5, 113, FAILED)
