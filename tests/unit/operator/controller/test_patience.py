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


@pytest.mark.parametrize("seconds", [0.005, 0.015, 0.025, 0.035])
def test_who_is_killed_before_the_first_word_of_a_job_finds_what_was_made(seconds: float) -> None:
    made = World(builders.job(workers=3))
    try:
        made.run(seconds)
        assert not made.job.status
        made.restart()
        made.run(3)
        assert made.job.status["allCreated"]
        assert sorted(made.pods) == ["digits-chief-0-0", *(f"digits-worker-{number}-0" for number in range(3))]
        assert len({pod["metadata"]["uid"] for pod in made.pods.values()}) == 4
        assert made.cluster.calls.count("create Pod digits-chief-0-0") == 1
    finally:
        made.close()


@pytest.mark.parametrize("seconds", [0.06, 0.3, 0.9])
def test_a_task_that_has_finished_stays_so_where_its_pod_goes_soon_after(seconds: float) -> None:
    """As of a drained node: its kubelet tells that the pod has ended, and takes it away. The chief still exports."""
    made = World(builders.job(workers=3))
    try:
        made.run(0.3)
        for name in sorted(made.pods):
            made.cluster.change("Pod", name, lambda one: one.update(status=builders.running()))
        made.run(5)
        (name,) = [one for one in made.pods if "worker-1" in one]
        ended = builders.ended(0, made.now())
        made.cluster.change(
            "Pod", name, lambda one: one["metadata"].update(deletionTimestamp=builders.at(5).isoformat())
        )
        made.run(5)
        made.cluster.change("Pod", name, lambda one: one.update(status=ended))
        made.run(seconds)
        made.cluster.remove("Pod", name)
        made.run(10)
        assert made.job.status["finished"] == [{"role": "worker", "attempt": 0, "indexes": "1"}]
        assert made.job.status["phase"] == "Running"
        assert not [one for one in made.pods if "worker-1" in one]
    finally:
        made.close()
