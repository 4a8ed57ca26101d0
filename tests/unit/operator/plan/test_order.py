# SPDX-License-Identifier: Apache-2.0
"""Which change of a status may wait, which jobs begin with their pods, and what else comes first."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Internal
from dtjob.api.status.restarts import Restarts
from dtjob.api.status.status import Status
from dtjob.api.status.workers import ReplicaStatus
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.plan.actions import Delete, Plan
from dtjob.plan.order import Order, only_counts, order_of
from dtjob.plan.plan import plan
from dtjob.plan.record.status import BLOCKED, set_condition, set_phase
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW
from tests.unit.operator.simulation.life.stage import elastic

WRITTEN = set_phase(Status(internal=Internal(all_created=False), ready="0/4"), Phase.PENDING, "WaitingForPods", "", NOW)


@pytest.mark.parametrize(
    "more",
    [
        {"ready": "3/4"},
        {"all_created": True},
        {"replica_statuses": {"worker": ReplicaStatus(replicas=3, active=1)}, "ready": "1/4"},
    ],
)
def test_a_change_of_counts_alone_may_be_written_later(more: dict[str, object]) -> None:
    assert only_counts(builders.changed(WRITTEN, **more), WRITTEN)


@pytest.mark.parametrize(
    "status",
    [
        WRITTEN,
        set_phase(WRITTEN, Phase.RUNNING, "AllTasksRunning", "", NOW),
        set_condition(WRITTEN, BLOCKED, True, "CannotCreate", "Pod/a: quota", NOW),
        builders.changed(WRITTEN, message="worker-0 waits: ErrImagePull", ready="1/4"),
        builders.changed(WRITTEN, attempts=Attempts(exceptions={"worker-0": 1}), all_created=False),
        builders.changed(WRITTEN, restarts=Restarts(total=1)),
        builders.changed(WRITTEN, finished={"worker-0": 0}),
    ],
)
def test_a_status_with_any_other_change_is_written_at_once(status: Status) -> None:
    assert not only_counts(status, WRITTEN)


def test_a_first_status_that_only_says_that_pods_are_waited_for_may_be_written_later() -> None:
    assert only_counts(WRITTEN, Status())
    assert not only_counts(builders.changed(WRITTEN, message="worker-0 waits: ErrImagePull"), Status())
    slow = "worker-0 waits: ContainerCreating"
    assert only_counts(builders.changed(WRITTEN, message=slow), Status(), slow)
    assert not only_counts(set_phase(WRITTEN, Phase.RUNNING, "AllTasksRunning", "", NOW), Status())


NOTHING = Children()


def planned(job: Job, children: Children = NOTHING, defaults: Defaults = NO_DEFAULTS) -> bool:
    return order_of(job, children, plan(job, children, NOW, defaults), creates=True) is Order.MAKE


def test_a_small_new_job_gets_its_pods_before_its_first_status() -> None:
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
def test_a_large_suspended_resumed_or_elastic_job_gets_its_status_before_its_pods(job: Job) -> None:
    assert not planned(job)


def test_a_job_with_an_object_or_a_refusal_gets_its_status_before_its_pods() -> None:
    job = builders.job()
    assert not planned(job, Children((builders.stranger("Service", "digits"),)))
    assert not planned(job, Children(problems={"Service/digits": "quota"}))


def test_a_job_with_a_default_image_gets_its_status_before_its_pods() -> None:
    job = builders.job(image=None)
    assert not planned(job, defaults=Defaults(image="registry.example.com/default:1"))


def test_the_finish_of_an_ended_jobs_task_may_be_written_later_but_for_its_evaluator() -> None:
    ended = set_phase(WRITTEN, Phase.SUCCEEDED, "Completed", "", NOW)
    assert only_counts(builders.changed(ended, finished={"worker-0": 0}), ended)
    assert not only_counts(builders.changed(ended, finished={"evaluator-0": 0}), ended)


SAID = Plan(status={"phase": "Running"})


@pytest.mark.parametrize(
    ("decided", "more", "order"),
    [
        (SAID, {}, Order.WRITE),
        (SAID, {"creates": True}, Order.WRITE),
        (SAID, {"may_wait": True}, Order.LATER),
        (Plan(), {}, Order.WRITE),
        (Plan(), {"creates": True}, Order.CHECK),
        (Plan((Delete("Pod", "digits-worker-1-0", "u", "it is at attempt 1"),)), {}, Order.WRITE),
        (Plan((Delete("Pod", "digits-data-1-0", "u", "none is wanted", surplus=True),)), {}, Order.CHECK),
        (Plan(), {"creates": True, "failed": True}, Order.CHECK),
    ],
)
def test_a_status_comes_first_and_a_check_where_there_is_none(decided: Plan, more: Any, order: Order) -> None:
    assert order_of(builders.job(), NOTHING, decided, **{"creates": False, **more}) is order


@pytest.mark.parametrize("more", [{"creates": False}, {"creates": True, "failed": True}])
def test_a_new_job_of_which_nothing_can_be_made_gets_its_status(more: Any) -> None:
    job = builders.job()
    assert order_of(job, NOTHING, plan(job, NOTHING, NOW), **more) is Order.WRITE
