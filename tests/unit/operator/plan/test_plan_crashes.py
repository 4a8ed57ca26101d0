# SPDX-License-Identifier: Apache-2.0
"""The operator dies before or after each single call of some busy minutes, and comes back with what the cluster has.

Where `test_plan_properties.py` draws when it dies, here every moment has its turn (`make simulate`; the unit tier takes
one in 24, half of them under each strategy).
"""

import itertools
import os
from collections.abc import Callable
from typing import Any

import pytest

from dtjob.api.job import KIND, Job
from dtjob.objects import kueue
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.queued import CLAIM, QUEUE, labelled
from tests.unit.operator.simulation.life.machine import Life
from tests.unit.operator.simulation.life.stage import elastic
from tests.unit.operator.simulation.operator import World

EVERY = 1 if os.environ.get("DTJOB_SIMULATED_LIVES", "0") != "0" else 48


class Scripted(Life):
    """A life of one job that runs, to be told step by step."""

    def begin(self, job: Job) -> None:
        """It runs."""
        self.world = World(job, strict=True)
        for _ in range(2):
            self.world.run(1)
            self.all_run()
        self.world.run(1)

    def end_well(self) -> None:
        """Everything is repaired, and it comes to rest."""
        self.repair()
        self.settle()
        self.check_charges()
        self.check_quota_is_given_back()
        self.world.run(3700)  # so long an evaluator is waited for that its queue lets have no pod any more
        self.check_rest()

    def evict(self) -> None:
        """Its queue takes its quota back."""
        for name in self.world.kueue.in_force():
            self.world.kueue.evict(name, "Preempted")

    def pods_end(self, seconds: float) -> None:
        """Those that are told to, and then time passes."""
        self.kubelets_end_what_is_deleted()
        self.world.run(seconds)

    def move(self, queue: str | None) -> None:
        """kubectl label."""

        def change(job: Manifest) -> None:
            job["metadata"]["labels"] = {kueue.QUEUE: queue} if queue else {}

        self.world.cluster.change(KIND, "digits", change)


def scaled_while_it_is_evicted(life: Scripted) -> None:
    life.world.kueue.open = False
    life.scale("digits", 3)
    life.world.run(0.5)
    life.world.kueue.opens()
    life.world.run(0.3)
    life.pods_end(1)
    life.all_run()
    life.evict()
    life.world.run(0.3)
    life.scale("digits", 1)
    life.pods_end(1)


def fails_while_it_is_scaled_and_suspended(life: Scripted) -> None:
    life.scale("digits", 3)
    life.world.run(0.08)
    if chief := life.chief_of("digits"):
        life.blame(chief, "Error")
        life.set_status(chief, builders.ended(1, life.world.node_time()))
    life.world.run(3)
    life.pods_end(1)
    life.there_is_room()
    life.world.run(1)
    life.all_run()
    life.scale("digits", 1)
    life.world.run(0.05)
    life.set_suspend("digits", True)
    life.world.run(0.05)
    life.set_suspend("digits", False)
    life.world.run(1)


def finishes_while_it_is_evicted(life: Scripted) -> None:
    life.evict()
    life.world.run(0.2)
    if chief := life.chief_of("digits"):
        life.finish(chief)
    life.world.run(0.1)
    life.pods_end(1)


def moved_between_queues(life: Scripted) -> None:
    for name in life.world.kueue.names():
        life.world.cluster.remove(kueue.KIND, name)
    life.world.run(0.07)
    life.move(None)
    life.world.run(0.07)
    life.move("team-b")
    life.world.run(0.5)
    life.pods_end(0.3)
    life.evict()
    life.move(None)
    life.world.run(0.2)
    life.set_suspend("digits", True)
    life.pods_end(0.3)
    life.move("team-c")
    life.set_suspend("digits", False)
    life.world.run(1)


def cut_off_while_it_is_scaled(life: Scripted) -> None:
    life.scale("digits", 3)
    life.world.run(0.05)
    life.set_deadlines("digits", {"activeDeadlineSeconds": 4, "ttlSecondsAfterFinished": 60})
    life.world.run(3)
    life.pods_end(10)


def grows_again_after_it_gave_quota_back(life: Scripted) -> None:
    life.scale("digits", 1)
    life.world.run(1)
    life.pods_end(1)
    life.all_run()
    life.world.run(1)
    life.world.kueue.open = False
    life.scale("digits", 2)
    life.world.run(400)
    life.world.kueue.opens()
    life.world.run(1)


def suspended_while_checks_are_open(life: Scripted) -> None:
    life.world.kueue.open = False
    life.scale("digits", 4)
    life.world.run(1)
    for name in life.world.kueue.waiting():
        life.world.kueue.reserve(name)
    life.world.run(1)
    life.set_suspend("digits", True)
    life.world.run(0.3)
    life.pods_end(1)
    life.world.kueue.opens()
    life.set_suspend("digits", False)
    life.world.run(1)


STORIES: tuple[Callable[[Scripted], None], ...] = (
    scaled_while_it_is_evicted,
    fails_while_it_is_scaled_and_suspended,
    finishes_while_it_is_evicted,
    moved_between_queues,
    cut_off_while_it_is_scaled,
    grows_again_after_it_gave_quota_back,
    suspended_while_checks_are_open,
)
JOBS: tuple[dict[str, Any], ...] = (
    {"strategy": "MultiWorkerMirrored", "evaluator": True},
    {"strategy": "ParameterServer", "ps": 1},
)


def told(story: Callable[[Scripted], None], job: Job, crash: tuple[int, bool] | None) -> int:
    """The story with a crash at this call, before (True) or after it takes effect; how many calls it had."""
    life = Scripted()
    life.begin(job)
    cluster = life.world.cluster
    before = len(cluster.calls)
    try:
        if crash is not None:
            cluster.crash_in, cluster.crash_before = crash
        story(life)
        calls = len(cluster.calls) - before
        life.end_well()
    finally:
        life.world.close()
    return calls


@pytest.mark.parametrize("kind", JOBS, ids=lambda kind: str(kind["strategy"]))
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_job_keeps_its_guarantees_at_whichever_call_the_operator_dies(story, kind):
    """No rule is broken at any call, nothing is charged twice or forgotten, and the job comes to rest."""
    policy = {"maxRestartsWithoutProgress": 3, "backoff": {"initialSeconds": 0, "maxSeconds": 300}}
    job = labelled(elastic(builders.job(**kind, failurePolicy=policy, checkpoint=CLAIM)), QUEUE)
    calls = told(story, job, None)
    assert calls > 3, "nothing happened in it"
    moments = list(itertools.product(range(calls + 1), (True, False)))
    for crash in moments[JOBS.index(kind) * EVERY // 2 :: EVERY]:
        told(story, job, crash)
