"""The situation: observed once, and seen again only where a new attempt changes what is seen."""

from __future__ import annotations

from dataclasses import replace

from dtjob.plan.children import Children, PodState
from dtjob.plan.situation import Situation
from dtjob.plan.status import bump_attempts
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at


def test_states_are_those_at_its_moment():
    job = builders.job()
    lost = builders.deleting(builders.pod(job, "worker-0", builders.running()), NOW, grace=30)
    states = [[view.state for view in builders.situation(job, lost, now=now).views] for now in (at(44), at(45))]
    missing = PodState.MISSING
    assert states == [[missing, PodState.RUNNING, missing], [missing, PodState.LOST, missing]]


def test_the_status_has_what_was_reported_and_the_written_one_has_not():
    job = builders.with_status(builders.job(), {"checkpoint": {"step": 10}, "observedGeneration": 0})
    seen = Situation.of(job, Children((), {"chief-0": {"step": 30, "checkpoint": {"step": 20}}}), NOW)
    assert (seen.written.progress.checkpoint_step, seen.status.progress.checkpoint_step) == (10, 20)
    assert (seen.written.observed_generation, seen.status.observed_generation) == (0, 1)
    assert seen.reports["chief-0"]["step"] == 30


def test_a_finished_tasks_last_words_are_reports():
    job = builders.job()
    pod = builders.pod(job, "chief-0", builders.ended(0, message='{"step": 46}'))
    seen = Situation.of(job, Children((pod,), {"chief-0": {"step": 45}}), NOW)
    assert seen.reports == {"chief-0": {"step": 46}}
    assert seen.status.progress.training["step"] == 46


def test_a_new_attempt_is_seen_and_nothing_else_is_looked_at_again():
    job = builders.job()
    pods = builders.all_pods(job)
    pods["worker-0"]["status"] = builders.out_of_memory()
    before = builders.situation(job, *pods.values())
    after = before.with_status(bump_attempts(before.status, [builders.task("worker-0")], []))
    chief, first, second = after.views
    assert (first.attempt, first.pod, first.state) == (1, None, PodState.MISSING)
    assert first.pods == (pods["worker-0"],)
    assert (chief, second) == (before.views[0], before.views[2])
    assert chief is before.views[0]
    assert before.views[1].state is PodState.FAILED


def test_another_status_with_the_same_attempts_is_seen_alike():
    before = builders.situation(builders.job())
    after = before.with_status(replace(before.status, reason="Blocked"))
    assert after.views is before.views
    assert (after.status.reason, after.written) == ("Blocked", before.written)


def test_who_is_the_chief_and_who_trains():
    with_chief = builders.situation(builders.job(evaluator=True, workers=1))
    assert with_chief.chief.task.id == "chief-0"
    assert [view.task.id for view in with_chief.training] == ["chief-0", "worker-0"]
    assert builders.situation(builders.job(chief=False)).chief.task.id == "worker-0"
