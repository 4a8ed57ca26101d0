# SPDX-License-Identifier: Apache-2.0
"""Lost peers: tasks that fail only because another task was taken from them, and causes that show late.

Under our supervisor the loss of a peer never ends a container, except after several restarts in vain. An image of the
user's own ends with whatever code its program has for it.
"""

from collections.abc import Set
from datetime import datetime, timedelta

from dtjob.api.job import Job, Spec
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.api.status.internal import Errors, Incident
from dtjob.api.status.restarts import LastFailure
from dtjob.objects import topology
from dtjob.objects.exit_codes import RESTARTED_IN_VAIN
from dtjob.objects.manifest import Manifest
from dtjob.objects.topology import Task
from dtjob.plan.failure.budget import WINDOW, shows_its_cause, with_another_failure
from dtjob.plan.failure.cause import disruption_of, failure_of, of_pod
from dtjob.plan.failure.decisions import Restart, Wait
from dtjob.plan.failure.rules import ruled
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.record.status import ran_before, stopped_running
from dtjob.plan.seen.children import TaskView, asked_to_go_at, condition_of, deleting, ended, facts_of, is_lost, node_of
from dtjob.plan.seen.situation import Situation

NOTICED_AFTER = timedelta(seconds=60)
"""A lost node is noticed at most so long after its pods' peers have failed. Kubernetes takes a node for lost that is
silent for 50 s. TensorFlow's peers fail 9 s after a task fell silent."""

POD_FAILS_AFTER = timedelta(seconds=10)
"""A kubelet that ends a pod tells of its containers' ends first, and then what it did and that the pod has failed."""

CLOCKS_AGREE = timedelta(seconds=10)
"""A failure shows within this time after it. Otherwise its node's clock is not right, or no operator looked."""

NODE_GONE = ("DeletionByTaintManager", "DeletionByPodGC")
"""Reasons of DisruptionTarget that come long after the pod was lost, from controllers that watch nodes."""

EXPLAINED = (Cause.ERROR, Cause.SIGNAL, Cause.STALLED)
"""Causes of incidents of which more may show later."""

SHOWN_LATE = (Cause.DISRUPTION, Cause.OOM_KILLED, Cause.STORAGE_LIMIT_EXCEEDED)
"""Causes of a replaced pod's end that cannot come from its replacement, which deletes it."""


def first_cause(situation: Situation, failure: Failure) -> Failure:
    """The cause of a failure: a peer that is being removed and has not ended yet, or else the failure itself.

    The removed peer is the last to show it: its node, if it still exists, reports only when all containers have ended.
    A silent task that has not ended may itself be the removed one.
    """
    if failure.cause is Cause.STALLED:
        suspects = [situation.by_task[failure.task]]
    elif failure.cause is Cause.ERROR:
        suspects = _suspects(situation, failure.task.id, failure.exit_code)
    else:
        return failure
    silent = _silent_nodes(situation) if suspects else frozenset()
    for view in suspects:
        if view.pod is not None and (found := _disruption_under_way(view.task, view.pod, silent, situation.now)):
            return found
    return failure


def repeated_errors(situation: Situation, incident: Incident, first: Failure) -> Errors | None:
    """The repeated errors that end with the incident, which begins now over `first`. None if no peer can be the cause.

    Until Kubernetes notices that a node is lost, the scheduler gives it the replacement of the pod that was lost with
    it. The group then fails again, because the replacement has no address.
    """
    if first.cause is not Cause.ERROR or not _suspects(situation, first.task.id, first.exit_code):
        return None
    errors = situation.status.internal.incident.errors if situation.status.internal.incident else None
    if errors is None or incident.started_at - errors.began > NOTICED_AFTER:
        return Errors(began=incident.started_at, count=1, attempts=situation.status.internal.attempts)
    return errors.but(count=errors.count + 1)


def explain(situation: Situation) -> Restart | None:
    """The cause of the latest incident, if it shows only now. It shows at the pod that failed first, or at a peer whose
    loss led to the error. Most of these pods were replaced since. Rules have been applied to it."""
    incident, first = situation.status.internal.incident, situation.status.last_failure
    if incident is None or incident.cause not in EXPLAINED:
        return None
    in_time, views = shows_its_cause(incident, situation.now), _suspects_of(situation, incident, first)
    if in_time:
        views = [*(view for view in situation.training if first is not None and view.task.id == first.task), *views]
    was, began = incident.cause, incident.errors.attempts if incident.errors else incident.attempts
    now, candidates = situation.now, []
    for view in views:
        at_first, at_last = began.of(view.task.id), incident.attempts.of(view.task.id)
        for pod in view.pods:
            attempt = topology.attempt_of(pod) if pod is not view.pod else view.attempt
            if (pod is not view.pod or in_time) and at_first <= attempt <= at_last:
                candidates.append((attempt - at_first, view, pod))
    silent = _silent_nodes(situation) if candidates else frozenset()
    suspended = situation.status.went_on_after(incident.started_at)
    for later, view, pod in sorted(candidates, key=lambda candidate: candidate[0]):
        if pod is view.pod:
            found = _disruption_under_way(view.task, pod, silent, now)
        else:
            found = _shown_late(view.task, pod, silent, incident.started_at, now)
        if found is not None:
            # A pod that was made during the repeated errors has nothing to do with those before it.
            errors = max(incident.errors.count - later, 1) if incident.errors and found.cause is Cause.DISRUPTION else 1
            found = ruled(situation, found)
            # A loss during a suspension is not counted. Nobody can tell whether this one happened then.
            if found.action is not RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS and suspended:
                continue
            return Restart((), with_another_failure(incident, found, errors), found, was, errors)
    return None


def may_follow_from(situation: Situation, failure: Failure, gone: Set[Task]) -> bool:
    """Whether the failure can follow from the loss of one of these tasks alone."""
    spec, task = situation.group_job.spec, failure.task
    if failure.cause is not Cause.ERROR or not _may_follow_from_a_loss(spec, failure.exit_code):
        return False
    if spec.strategy is Strategy.MULTI_WORKER_MIRRORED:
        return len(gone) > (task in gone)
    of_ps = spec.strategy is Strategy.PARAMETER_SERVER and _needs_every_ps(situation.group_job, task.id)
    return of_ps and any(one.role is Role.PS for one in gone)


def wait_for_late_reports(situation: Situation, failure: Failure) -> Wait | None:
    """Before a job fails for good, wait for what its nodes may still report. None if that wait is over.

    A peer that was not seen to end may be on a node whose loss is noticed later. A pod that has not ended with its
    container is being ended by its kubelet, or has a sidecar.
    """
    wait = timedelta(0)
    if failure.cause is Cause.ERROR:
        suspects = _suspects(situation, failure.task.id, failure.exit_code)
        # A pod that was last seen running: its node may be gone.
        pods = (pod for view in suspects for pod in view.pods if not ended(pod))
        wait = NOTICED_AFTER if any(facts_of(pod).runs for pod in pods) else wait
    if failure.cause in (Cause.ERROR, Cause.SIGNAL):
        own = situation.by_task[failure.task].pod
        wait = max(wait, POD_FAILS_AFTER) if own is not None and not facts_of(own).is_terminal else wait
    until = _until(situation, failure, wait) if wait else None
    return Wait(until, failure) if until is not None else None


def _until(situation: Situation, failure: Failure, wait: timedelta) -> datetime | None:
    """The failure's time plus `wait`; None once that is over. A clock that is ahead of ours must not delay the end of
    the job, and a clock that is behind must not hasten it."""
    now = situation.now
    if -timedelta(seconds=2) <= now - failure.time < wait:  # by the node's clock
        return failure.time + wait
    goes_on = situation.group_job.spec.strategy is Strategy.PARAMETER_SERVER and failure.task != situation.chief.task
    asks = not goes_on and ran_before(situation.status)
    since = stopped_running(situation.status.conditions, now) if asks else None
    if since is None or abs(since - failure.time) <= CLOCKS_AGREE:
        return None
    return since + wait if now < since + wait else None


def _suspects_of(situation: Situation, incident: Incident, first: LastFailure | None) -> list[TaskView]:
    """The tasks whose loss would explain the incident.

    `first` may already be a later failure, of the task's next attempt, over which the job is about to fail. Then
    repeated errors say that there are such tasks. After a stall, each replaced task is one: the node of a silent task
    may be lost.
    """
    task, began = first.task if first else "", incident.attempts
    if incident.cause == Cause.STALLED:
        return [view for view in situation.training if view.attempt > began.of(view.task.id)]
    if incident.cause != Cause.ERROR:
        return []
    _, attempt = topology.named_attempt(situation.group_job.metadata.name, first.pod if first else "")
    if attempt is None or attempt <= began.of(task):
        return _suspects(situation, task, first.exit_code if first else None)
    if incident.errors is None:
        return []
    only_the_chief = situation.group_job.spec.strategy is Strategy.PARAMETER_SERVER
    return _suspects(situation, situation.chief.task.id if only_the_chief else "", RESTARTED_IN_VAIN)


def _suspects(situation: Situation, failed: str, exit_code: int | None) -> list[TaskView]:
    """The tasks whose loss makes this task fail with this exit code. The code is None if its container never ran."""
    spec = situation.group_job.spec
    if not _may_follow_from_a_loss(spec, exit_code):
        return []
    if spec.strategy is Strategy.MULTI_WORKER_MIRRORED:
        return [view for view in situation.training if view.task.id != failed]
    if spec.strategy is Strategy.PARAMETER_SERVER and _needs_every_ps(situation.group_job, failed):
        return [view for view in situation.training if view.task.role is Role.PS]  # it trains on without a worker
    return []


def _needs_every_ps(job: Job, task: str) -> bool:
    """Whether a task of a ParameterServer job fails when a ps is lost: the chief task does. If worker 0 is the chief
    task, every worker does, as each reads and writes the variables itself."""
    by_themselves = job.spec.replica_specs.chief is None and task.startswith(f"{Role.WORKER.value}-")
    return by_themselves or task == topology.chief_task(job).id


def _may_follow_from_a_loss(spec: Spec, exit_code: int | None) -> bool:
    """Whether a task can end with this exit code because it has lost a peer. The code is None if its container never
    ran."""
    return exit_code is not None and (spec.program is None or exit_code == RESTARTED_IN_VAIN)


def _silent_nodes(situation: Situation) -> frozenset[str]:
    """The nodes that do not answer, as far as the pods of this job show it."""
    pods = (pod for view in situation.views for pod in view.pods)
    return frozenset(node_of(pod) for pod in pods if _is_marked(pod)) - {""}


def _is_marked(pod: Manifest) -> bool:
    """Whether the node controller has marked the pod: it sets Ready to False and leaves ContainersReady, from which a
    kubelet computes Ready. Readiness gates of the pod look the same."""
    ready, containers = (condition_of(pod, type_).get("status") for type_ in ("Ready", "ContainersReady"))
    marked = ready == "False" and containers == "True"
    return marked and not ended(pod) and not (pod.get("spec") or {}).get("readinessGates")


def _disruption_under_way(task: Task, pod: Manifest, silent: frozenset[str], now: datetime) -> Failure | None:
    """The disruption of a pod that has not ended. None if there is none."""
    if ended(pod):
        return None
    if reason := disruption_of(pod):
        return of_pod(task, pod, Cause.DISRUPTION, now, f"is being disrupted ({reason})")
    if deleting(pod):
        return of_pod(task, pod, Cause.DELETED, now, "is being deleted")
    return _on_a_silent_node(task, pod, silent, now)


def _shown_late(task: Task, pod: Manifest, silent: frozenset[str], began: datetime, now: datetime) -> Failure | None:
    """What a replaced pod shows by now about the incident that `began` then. Its deletion was our own, and shows
    nothing. A pod that was deleted long afterwards, as for a resize, shows nothing about that incident."""
    if deleting(pod) and not ended(pod) and asked_to_go_at(pod) - began > NOTICED_AFTER:
        return None
    in_time = now - began <= WINDOW
    if is_lost(pod, now):
        return of_pod(task, pod, Cause.DISRUPTION, now, "was lost with its node")
    if not ended(pod) and (reason := disruption_of(pod)) and (in_time or reason in NODE_GONE):
        return of_pod(task, pod, Cause.DISRUPTION, now, f"was disrupted ({reason})")
    if in_time:  # its failure as if nobody had deleted it
        metadata = {name: value for name, value in pod["metadata"].items() if name != "deletionTimestamp"}
        view = TaskView.of(task, topology.attempt_of(pod), ({**pod, "metadata": metadata},), now)
        if (end := failure_of(view, now)) is not None and end.cause in SHOWN_LATE:
            return end
    return _on_a_silent_node(task, pod, silent, now)


def _on_a_silent_node(task: Task, pod: Manifest, silent: frozenset[str], now: datetime) -> Failure | None:
    """The loss of a pod that has not ended on such a node, also if it never ran there."""
    if ended(pod) or node_of(pod) not in silent:
        return None
    return of_pod(task, pod, Cause.DISRUPTION, now, "is on a node that does not answer")
