"""Which change of a status may wait, and which jobs begin with their pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.plan.attempts import Attempts
from dtjob.plan.children import Children
from dtjob.plan.conditions import BLOCKED
from dtjob.plan.plan import plan
from dtjob.plan.status import Restarts, Status, set_condition, set_phase
from dtjob.plan.urgency import begins, only_counts
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW
from tests.unit.operator.simulation.life.stage import elastic

WRITTEN = set_phase(Status(all_created=False, ready="0/4"), Phase.PENDING, "WaitingForPods", "", NOW)


@pytest.mark.parametrize(
    "more",
    [
        {"ready": "3/4"},
        {"all_created": True},
        {"replica_statuses": {"worker": {"replicas": 3, "active": 1}}, "ready": "1/4"},
    ],
)
def test_counts_may(more: dict[str, object]) -> None:
    assert only_counts(replace(WRITTEN, **more), WRITTEN)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "status",
    [
        WRITTEN,
        set_phase(WRITTEN, Phase.RUNNING, "AllTasksRunning", "", NOW),
        set_condition(WRITTEN, BLOCKED, True, "CannotCreate", "Pod/a: quota", NOW),
        replace(WRITTEN, message="worker-0 waits: ErrImagePull", ready="1/4"),
        replace(WRITTEN, attempts=Attempts.from_json({"worker": 1}), all_created=False),
        replace(WRITTEN, restarts=Restarts(total=1)),
        replace(WRITTEN, finished={"worker-0": 0}),
    ],
)
def test_all_else_is_written_at_once(status: Status) -> None:
    assert not only_counts(status, WRITTEN)


def test_so_may_the_first_while_it_only_says_that_pods_are_waited_for() -> None:
    assert only_counts(WRITTEN, Status())
    assert not only_counts(replace(WRITTEN, message="worker-0 waits: ErrImagePull"), Status())
    assert not only_counts(set_phase(WRITTEN, Phase.RUNNING, "AllTasksRunning", "", NOW), Status())


NOTHING = Children()


def planned(job: Job, children: Children = NOTHING, defaults: Defaults = NO_DEFAULTS) -> bool:
    return begins(job.status, children, plan(job, children, NOW, defaults))


def test_a_small_new_job_begins_with_its_pods() -> None:
    assert planned(builders.job(workers=4))


@pytest.mark.parametrize(
    "job",
    [
        builders.job(workers=5),
        builders.job(status={"phase": "Suspended"}),
        builders.job(suspend=True),
        elastic(builders.job()),
    ],
    ids=["large", "another life", "suspended", "elastic"],
)
def test_others_begin_with_a_word(job: Job) -> None:
    assert not planned(job)


def test_so_does_one_of_which_something_is_there_or_was_refused() -> None:
    job = builders.job()
    assert not planned(job, Children((builders.stranger("Service", "digits"),)))
    assert not planned(job, Children(problems={"Service/digits": "quota"}))


def test_so_does_one_that_has_to_remember_its_image() -> None:
    job = builders.job(image=None)
    assert not planned(job, defaults=Defaults(image="registry.example.com/default:1"))


def test_of_a_job_that_has_ended_only_the_evaluator_would_be_made_again() -> None:
    ended = set_phase(WRITTEN, Phase.SUCCEEDED, "Completed", "", NOW)
    assert only_counts(replace(ended, finished={"worker-0": 0}), ended)
    assert not only_counts(replace(ended, finished={"evaluator-0": 0}), ended)
