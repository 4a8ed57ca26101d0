"""How long a status that tells of counts alone waits."""

from __future__ import annotations

import pytest

from dtjob.controller.patience import LONGEST_SECONDS, SHORTEST_SECONDS, Patience
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World

KEY = ("default", "digits")


@pytest.mark.parametrize(("busy", "longest"), [(False, SHORTEST_SECONDS), (True, LONGEST_SECONDS)])
def test_it_waits_from_its_first_look_on_and_no_longer_than_that(busy: bool, longest: float) -> None:
    patience, now = Patience(), 1000.0
    while wait := patience.wait(KEY, now, busy):
        assert wait >= SHORTEST_SECONDS / 2
        now += wait
    assert 1000 + longest <= now < 1000 + longest + SHORTEST_SECONDS
    patience.forget(KEY)
    assert patience.wait(KEY, now, busy)


def test_jobs_wait_each_for_itself() -> None:
    patience = Patience()
    assert patience.wait(KEY, 0.0, busy=False)
    assert patience.wait(("default", "other"), 0.5, busy=False) == SHORTEST_SECONDS
    assert not patience.wait(KEY, SHORTEST_SECONDS, busy=False)


def test_a_small_job_is_written_three_times_from_its_beginning_to_its_end() -> None:
    made = World(builders.job(workers=3))
    try:
        made.run(0.3)
        for state in (builders.running(), builders.ended(0, made.now())):
            for name in sorted(made.pods):
                made.run(0.02)
                made.cluster.change("Pod", name, lambda one, state=state: one.update(status=state))
            made.run(5)
        assert made.job.status["phase"] == "Succeeded"
        assert made.job.status["replicaStatuses"]["worker"]["succeeded"] == 3
        assert made.cluster.calls.count("write status") == 3
    finally:
        made.close()


def test_who_is_killed_before_counts_are_written_finds_them_again() -> None:
    made = World(builders.job(workers=3))
    try:
        made.run(0.3)
        assert not made.job.status["allCreated"]
        assert len(made.pods) == 4
        made.restart()
        made.run(3)
        assert made.job.status["allCreated"]
        assert made.cluster.calls.count("create Pod digits-chief-0-0") == 1
    finally:
        made.close()


def test_who_has_done_its_part_is_written_before_its_pod_can_go() -> None:
    made = World(builders.job(workers=3))
    try:
        made.run(0.3)
        for name in sorted(made.pods):
            made.cluster.change("Pod", name, lambda one: one.update(status=builders.running()))
        made.run(3)
        worker = "digits-worker-1-0"
        made.cluster.change("Pod", worker, lambda one: one.update(status=builders.ended(0, made.now())))
        made.run(0.5)
        made.cluster.remove("Pod", worker)  # kubectl drain
        made.run(10)
        assert "digits-chief-0-0" in made.pods
        assert not made.job.status["restarts"]["total"]
    finally:
        made.close()
