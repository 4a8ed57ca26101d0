# SPDX-License-Identifier: Apache-2.0
"""Histories that the simulation has found, each by itself: `test_plan_properties.py` draws such ones."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dtjob.api.job import KIND, Job
from dtjob.objects import labels
from tests.unit.operator import builders
from tests.unit.operator.simulation.guarantees import EVERYTHING
from tests.unit.operator.simulation.operator import World

POLICY: dict[str, Any] = {"maxRestartsWithoutProgress": 3, "backoff": {"initialSeconds": 0, "maxSeconds": 300}}


@contextmanager
def life(job: Job) -> Iterator[World]:
    """The job's world, in which all guarantees are asked for."""
    world = World(job, must=EVERYTHING)
    try:
        yield world
    finally:
        world.close()


def all_run(world: World) -> None:
    for name, one in world.pods.items():
        if not one.get("status"):
            become(world, name, builders.running())
    world.run(1)


def become(world: World, name: str, status: dict[str, Any]) -> None:
    world.cluster.change("Pod", name, lambda one: one.update(status=status))


@pytest.mark.parametrize("on_its_way", [False, True])
def test_an_operator_whose_watch_is_lost_may_go_on_with_a_job_that_is_gone(on_its_way: bool) -> None:
    """Kubernetes collects what it makes for it; the next resync tells it of the job that has the name now. The watch is
    lost before the job goes, or with that news on its way."""
    with life(builders.job("MultiWorkerMirrored", workers=2, failurePolicy=POLICY)) as world:
        world.cluster.quota = 1
        world.run(1)
        if not on_its_way:
            world.lose_watch()
        world.cluster.remove(KIND, "digits")
        world.lose_watch()
        for (kind, name), one in list(world.cluster.objects.items()):
            if labels.controller_uid(one) == builders.JOB_UID:
                world.cluster.remove(kind, name)
        world.apply(builders.job("MultiWorkerMirrored", workers=2, uid="another", failurePolicy=POLICY))
        world.cluster.quota = None
        world.run(60)  # what was refused is tried again
        world.watch_again()
        world.resync()
        world.cluster.calls.clear()
        for (kind, name), one in list(world.cluster.objects.items()):
            if labels.controller_uid(one) == builders.JOB_UID:
                world.cluster.remove(kind, name)
        world.run(60)
        all_run(world)
        assert world.job.status["phase"] == "Running"
        assert {labels.controller_uid(one) for one in world.cluster.of_kind("Pod")} == {"another"}


def test_the_network_policy_of_the_last_evaluator_is_created_again_after_the_jobs_end() -> None:
    """Somebody had deleted the policy that its new pod would be open to all without."""
    with life(builders.job("Mirrored", evaluator=True, failurePolicy=POLICY)) as world:
        world.run(1)
        all_run(world)
        world.lose_watch()
        world.cluster.remove("NetworkPolicy", "digits")
        become(world, "digits-evaluator-0-0", builders.evicted())
        become(world, "digits-chief-0-0", builders.ended(0, world.now()))
        world.watch_again()
        world.resync()
        world.run(60)
        assert world.job.status["phase"] == "Succeeded"
        assert "digits-evaluator-0-1" in world.pods
        assert ("NetworkPolicy", "digits") in world.cluster.objects


def test_a_plan_that_breaks_a_rule_is_found_where_nothing_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    with life(builders.job("MultiWorkerMirrored", failurePolicy=POLICY)) as world:

        def broken(*_: Any) -> None:
            raise AssertionError("somebody was started anew")

        monkeypatch.setattr(world.cluster.plan_rules, "check", broken)
        logging.disable(logging.CRITICAL)
        try:
            with pytest.raises(AssertionError, match="somebody was started anew"):
                world.run(1)
        finally:
            logging.disable(logging.NOTSET)
