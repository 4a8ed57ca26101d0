# SPDX-License-Identifier: Apache-2.0
"""How often: less for what is big and many; and how long a status that tells of counts alone waits."""

from datetime import timedelta
from typing import Any

import pytest

from dtjob.controller.pace.pace import (
    FIRST_SECONDS_A_JOB,
    LONGEST_FIRST_SECONDS,
    LONGEST_GATHER_SECONDS,
    LONGEST_STATUS_SECONDS,
    MOST_FIRST_SECONDS,
    MUCH,
    SHORTEST_STATUS_SECONDS,
    StatusDelay,
    gather_seconds,
    progress_every,
)
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World, job_manifest


@pytest.mark.parametrize(("children", "seconds"), [(0, 0.1), (3, 0.1), (100, 0.1), (300, 0.3), (500, 0.5), (4000, 0.5)])
def test_events_of_big_jobs_are_gathered_longer(children: int, seconds: float) -> None:
    assert gather_seconds(children) == pytest.approx(seconds)
    assert gather_seconds(children) <= LONGEST_GATHER_SECONDS


@pytest.mark.parametrize(("jobs", "seconds"), [(0, 10), (1, 10), (200, 10), (1000, 50), (5000, 250)])
def test_progress_writes_of_all_jobs_together_have_a_limit(jobs: int, seconds: float) -> None:
    assert progress_every(jobs) == timedelta(seconds=seconds)


def run(made: World, name: str, **status: Any) -> None:
    made.cluster.change("Pod", name, lambda one: one.update(status={**builders.running(), **status}))


def test_progress_of_many_jobs_is_written_less_often() -> None:
    with World(builders.job(workers=2)) as made:
        made.run(2)
        for name in made.pods:
            run(made, name)
        for number in range(1000):
            other = job_manifest(builders.job(name=f"other-{number}", uid=f"other-{number}"))
            other["metadata"]["resourceVersion"] = "1"
            made.store.apply(other)
        made.run(2)
        before = made.cluster.calls.count("write status")
        for step in range(100):
            report: Manifest = {"jobUid": made.job.metadata.uid, "step": step, "state": "training"}
            made.store.set_report(made.key, "chief-0", report)
            made.queue.add(made.key)
            made.run(2)
        assert made.cluster.calls.count("write status") - before <= 200 / 50 + 1
        assert made.job.status["progress"]["step"] >= 74


KEY = ("default", "digits")


@pytest.mark.parametrize(
    ("jobs", "longest"),
    [(1, SHORTEST_STATUS_SECONDS), (MUCH, SHORTEST_STATUS_SECONDS), (MUCH + 1, LONGEST_STATUS_SECONDS)],
)
def test_the_delay_of_a_status_counts_from_the_first_look_and_has_a_limit(jobs: int, longest: float) -> None:
    status_delay, now = StatusDelay(), 1000.0
    while wait := status_delay.wait(KEY, now, jobs):
        assert wait >= SHORTEST_STATUS_SECONDS / 2
        now += wait
    assert 1000 + longest <= now < 1000 + longest + SHORTEST_STATUS_SECONDS
    status_delay.forget(KEY)
    assert status_delay.wait(KEY, now, jobs)


def test_a_first_status_waits_only_if_much_is_due() -> None:
    assert not StatusDelay().wait(KEY, 0.0, 1, first=True)
    assert StatusDelay().wait(KEY, 0.0, MUCH + 1, first=True)
    assert not StatusDelay(0).wait(KEY, 0.0, MUCH + 1, first=True)
    status_delay = StatusDelay()
    assert status_delay.wait(KEY, 0.0, MUCH + 1, first=True) == LONGEST_FIRST_SECONDS
    assert not status_delay.wait(KEY, 1.0, MUCH, first=True)


def crowd(status_delay: StatusDelay, jobs: int) -> None:
    for number in range(jobs):
        status_delay.wait(("default", f"other-{number}"), 0.0, MUCH + 1, first=True)


def waits(status_delay: StatusDelay, jobs: int = MUCH + 1) -> float:
    """Seconds until the first status of KEY is written, from 0 on."""
    now = 0.0
    while wait := status_delay.wait(KEY, now, jobs, first=True):
        now += wait
    return now


@pytest.mark.parametrize(
    ("jobs", "longest"),
    [(LONGEST_FIRST_SECONDS / FIRST_SECONDS_A_JOB, LONGEST_FIRST_SECONDS), (200, 200 * FIRST_SECONDS_A_JOB),
     (5000, MOST_FIRST_SECONDS)],
)  # fmt: skip
def test_the_delay_of_a_first_status_grows_with_the_number_of_new_jobs(jobs: float, longest: float) -> None:
    status_delay = StatusDelay()
    crowd(status_delay, int(jobs) - 1)
    assert waits(status_delay) == pytest.approx(longest)


def test_the_delay_of_the_last_of_many_new_jobs_stays_and_later_ones_are_short() -> None:
    status_delay = StatusDelay()
    crowd(status_delay, 199)
    status_delay.wait(KEY, 0.0, MUCH + 1, first=True)
    for number in range(199):  # one that was written, or says more than that it waits, is none of them any more
        key = ("default", f"other-{number}")
        status_delay.forget(key) if number % 2 else status_delay.wait(key, 0.0, MUCH + 1)
    assert waits(status_delay) == pytest.approx(200 * FIRST_SECONDS_A_JOB)
    status_delay.forget(KEY)
    assert waits(status_delay) == LONGEST_FIRST_SECONDS


def test_a_first_status_waits_for_many_new_jobs_however_little_is_due() -> None:
    status_delay = StatusDelay()
    crowd(status_delay, MUCH - 1)
    assert waits(status_delay, 1) == 0
    crowd(status_delay, 149)
    assert waits(status_delay, 1) == pytest.approx(150 * FIRST_SECONDS_A_JOB)


def test_a_small_job_is_written_three_times_from_its_beginning_to_its_end() -> None:
    with World(builders.job(workers=3)) as made:
        made.run(0.3)
        for state in (builders.running(), builders.ended(0, made.now())):
            for name in sorted(made.pods):
                made.run(0.02)
                made.cluster.change("Pod", name, lambda one, state=state: one.update(status=state))
            made.run(5)
        assert made.job.status["phase"] == "Succeeded"
        assert made.job.status["replicaStatuses"]["worker"]["succeeded"] == 3
        assert made.cluster.calls.count("write status") == 3
