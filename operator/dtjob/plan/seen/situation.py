# SPDX-License-Identifier: Apache-2.0
"""Situation: all that is observed of one job, gathered once for each plan, as in the Job controller's syncJobCtx; and
the draft of the plan, to which each policy adds what is to be done.

Everything but the spec uses the number of workers of the current group. `sized` gives the job with that number, which
decides its tasks, their cluster spec and their ConfigMap.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.block import whole
from dtjob.api.status.status import Status
from dtjob.api.status.workers import Resizing, Workers
from dtjob.objects import labels
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.objects.topology import Task
from dtjob.plan.actions import Action, Create, Event
from dtjob.plan.record.status import EVALUATION_GIVEN_UP, after_set_back, holds, say_accepted, with_bounded_wait
from dtjob.plan.seen.children import (
    Children,
    PodState,
    TaskView,
    attempts_of_pods,
    created_at,
    view_tasks,
    workers_of_lost_group,
)
from dtjob.plan.seen.progress import latest_reports, with_progress


@dataclass(frozen=True)
class Situation:
    """One job at one moment. Policies read it and change nothing."""

    group_job: Job
    """The job with as many workers as its group has now."""
    children: Children
    views: tuple[TaskView, ...]
    """Every task, the chief first and the evaluator last, at the attempts of `status`."""
    reports: Mapping[str, dict[str, Any]]
    """What each task's supervisor said last, by task id, as `read_report` reads it; of one that finished, its last
    words."""
    written: Status
    """The status that the job has."""
    status: Status
    """The status that it is to have, as far as that is known: with what `reports` say."""
    now: datetime
    defaults: Defaults = NO_DEFAULTS

    @classmethod
    def of(cls, job: Job, children: Children, now: datetime, defaults: Defaults = NO_DEFAULTS) -> "Situation":
        """The situation of the job, from its status and what is observed of its children."""
        known = written = Status.read(job.status)
        if written.internal.attempts == Attempts():
            known = written.remembering(attempts=attempts_of_pods(job, children))
        workers = workers_of(job, written.workers or workers_of_lost_group(job, children))
        job = sized(job, workers)
        views = _views(job, children, known, now)
        # Of all tasks, only the chief's and the evaluator's reports are read; they stand first and last.
        read = (views[0], views[-1])
        reports = latest_reports(read, children.reports)
        created = [created_at(pod) for view in views for pod in view.pods]
        status = with_bounded_wait(after_set_back(known, now), job.spec.failure_policy.backoff).but(
            observed_generation=job.metadata.generation,
            workers=workers,
            # A job without a written status began with its first pod.
            start_time=written.start_time or (whole(min(*created, now)) if created else None),
        )
        status = say_accepted(with_progress(job, status, reports, now), now)
        return cls(job, children, views, reports, written, status, now, defaults)

    def with_status(self, status: Status) -> "Situation":
        """The same moment with another status, and with the attempts and the number of workers that it says."""
        job = sized(self.group_job, status.workers)
        if job is self.group_job and status.internal.attempts == self.status.internal.attempts:
            views = _without_ignored(self.views, status)
        else:
            views = _views(job, self.children, status, self.now)
        return replace(self, group_job=job, status=status, views=views)

    @property
    def spec_job(self) -> Job:
        """The job with as many workers as its spec says."""
        workers = self.status.workers
        return self.group_job if workers is None else sized(self.group_job, workers.but(replicas=workers.desired))

    @property
    def resizing(self) -> Resizing | None:
        """The change of the number of workers that is under way, None if there is none."""
        return self.status.workers.resizing if self.status.workers else None

    @property
    def changing(self) -> Workers | None:
        """The workers of a job, if their number may change or is changing; else None."""
        workers, job = self.status.workers, self.group_job
        if workers is None or job.spec.replica_specs.worker is None:
            return None
        under_way = workers.resizing is not None or workers.replicas != workers.desired
        return workers if job.spec.elastic_policy is not None or under_way else None

    @cached_property
    def by_task(self) -> Mapping[Task, TaskView]:
        """The views by their tasks: thousands may fail at once."""
        return {view.task: view for view in self.views}

    @property
    def chief(self) -> TaskView:
        """The task that writes checkpoints and decides success."""
        return self.views[0]

    @property
    def chief_report(self) -> Mapping[str, Any]:
        """What the chief's supervisor said last, empty before its first report."""
        return self.reports.get(self.chief.task.id, {})

    @property
    def evaluator(self) -> TaskView | None:
        """The task that evaluates checkpoints, None if the job has none."""
        last = self.views[-1]
        return last if last.evaluates else None

    @property
    def training(self) -> tuple[TaskView, ...]:
        """Every task but the evaluator."""
        return self.views if self.evaluator is None else self.views[:-1]


def _views(job: Job, children: Children, status: Status, now: datetime) -> tuple[TaskView, ...]:
    return _without_ignored(view_tasks(job, children, status.internal, now), status)


def _without_ignored(views: tuple[TaskView, ...], status: Status) -> tuple[TaskView, ...]:
    """The views. An evaluator whose failure a rule ignores is Ignored, and nothing is done about it."""
    last = views[-1]
    if (
        not last.evaluates
        or last.up
        or last.state is PodState.IGNORED
        or status.ended
        or not holds(status.conditions, EVALUATION_GIVEN_UP)
    ):
        return views
    return (*views[:-1], last._replace(state=PodState.IGNORED))


def workers_of(job: Job, written: Workers | None) -> Workers | None:
    """The workers of the job as its spec has it now; None if it has none.

    A changed number is tried at once: what was tried lately for want of room was another's.
    """
    replica = job.spec.replica_specs.worker
    if replica is None:
        return None
    selector = f"{labels.JOB_UID}={job.metadata.uid},{labels.ROLE}={Role.WORKER.value}"
    if written is None:
        return Workers(desired=replica.replicas, replicas=replica.replicas, selector=selector)
    if written.desired == replica.replicas:
        return written if written.selector == selector else written.but(selector=selector)
    if job.spec.elastic_policy is None:  # it is made with the number that its spec says
        return written.but(desired=replica.replicas, replicas=replica.replicas, selector=selector)
    return written.but(desired=replica.replicas, adjusted_time=None, selector=selector)


def sized(job: Job, workers: Workers | None) -> Job:
    """The job with as many workers as its group has."""
    replica = job.spec.replica_specs.worker
    if workers is None or replica is None or replica.replicas == workers.replicas:
        return job
    replicas = job.spec.replica_specs.model_copy(
        update={"worker": replica.model_copy(update={"replicas": workers.replicas})}
    )
    return job.model_copy(update={"spec": job.spec.model_copy(update={"replica_specs": replicas})})


class Draft:
    """What is observed, the status that the job is to have, and the actions, Events and times of the plan.

    It is made and read within one call of `plan`.
    """

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        """What is observed, seen with the attempts and the group of `status`."""
        self.actions: list[Action] = []
        self.events: list[Event] = []
        self.times: list[datetime | None] = []
        """When time alone may change the plan. None stands for never."""
        self.events_of = ""
        """The uid of a pod whose own events are to be read."""
        self.unless_there: Create | None = None
        """What is to be made after these events are read, if the cluster does not have it."""

    @property
    def status(self) -> Status:
        """The status that the job is to have."""
        return self.situation.status

    @status.setter
    def status(self, status: Status) -> None:
        if status is not self.situation.status:
            self.situation = self.situation.with_status(status)

    @property
    def now(self) -> datetime:
        """The time of the plan."""
        return self.situation.now

    def do(self, actions: Iterable[Action]) -> None:
        """Add actions."""
        self.actions.extend(actions)

    def add_event(self, type_: str, reason: str, message: str) -> None:
        """Add an event; `type_` is Normal or Warning."""
        self.events.append(Event(type_, reason, message))

    def look_again(self, *times: datetime | None) -> None:
        """Add moments at which to plan again."""
        self.times.extend(times)
