# SPDX-License-Identifier: Apache-2.0
"""The end of a job: how it fails for good, which pods are deleted afterwards, and when the job itself is."""

from datetime import datetime, timedelta

from dtjob.api.job import KIND, CleanPodPolicy, Job
from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.plan.actions import Delete
from dtjob.plan.diagnosis.reachability import nothing_to_reach
from dtjob.plan.draft import Draft
from dtjob.plan.elastic.resize import strays
from dtjob.plan.failure.decisions import GiveUp, write_ahead
from dtjob.plan.lifetime.deadlines import ended_by_deadline
from dtjob.plan.lifetime.last_evaluation import (
    evaluate_last,
    evaluator_left,
    given_up_at,
    keeps_account,
)
from dtjob.plan.pods.convergence import converge_evaluator
from dtjob.plan.pods.gang import release_gang
from dtjob.plan.record.incidents import Interruption, add_incident, close_incident, correct_incident
from dtjob.plan.record.status import BLOCKED, EVALUATION_GIVEN_UP, confirm_phase, set_condition, set_phase
from dtjob.plan.seen.children import TaskView, count_tasks, deleting, ended, kept_by_sidecar
from dtjob.plan.seen.pod_facts import facts_of
from dtjob.plan.seen.situation import Situation


def fail(draft: Draft, end: GiveUp) -> None:
    """The job fails, over a failure or a deadline."""
    draft.status = close_incident(draft.status, draft.now)
    before = draft.status
    draft.status = set_phase(before, Phase.FAILED, end.reason, end.why, draft.now)
    if end.first is None:
        draft.add_event("Warning", end.reason, end.why)
        return
    what, incident = Interruption.of(end.first, before), before.internal.incident
    if end.goes_on and incident is not None:
        status = correct_incident(draft.status, what, incident.number)
    else:
        status = add_incident(draft.status, what, before.restarts.total + 1, draft.now, draft.now)
    draft.status = status.but(last_failure=end.first.in_status())
    draft.add_event("Warning", Phase.FAILED.value, end.why)


def after_the_end(draft: Draft, *, has_quota: bool) -> None:
    """Delete the pods of a job that has ended, and the job itself when its time has come.

    If training has succeeded, the evaluator first evaluates what was saved last. It needs the quota of its queue.
    """
    write_ahead(draft, evaluate_last(draft.situation))
    situation = draft.situation
    evaluator = evaluator_left(situation)
    if evaluator and has_quota and not situation.group_job.spec.suspend:
        draft.do(converge_evaluator(situation, evaluator))
    removed, lingers_until = pods_to_remove(situation)
    deleted, due = deletion(situation, lingers=lingers_until is not None)
    draft.do((*removed, *release_gang(situation), *deleted))
    draft.look_again(lingers_until, given_up_at(situation), due)
    draft.look_again(*(facts_of(pod).lost_at for view in situation.views for pod in view.pods))
    _describe(draft, situation)


def _describe(draft: Draft, situation: Situation) -> None:
    """Set conditions and counts. The phase stays as it is."""
    status, now = situation.status, draft.now
    if situation.evaluator and situation.evaluator.up:  # after it was given up, until it is removed
        status = set_condition(status, EVALUATION_GIVEN_UP, False, "EvaluatorAtWork", "", now)
    counted = count_tasks(status, situation.views)
    status = counted if keeps_account(situation) else counted.remembering(finished=status.internal.finished)
    if status.phase is Phase.SUCCEEDED and situation.written.ended:  # its pods may have been removed since
        status = status.but(ready=situation.status.ready)
    status = set_condition(status, BLOCKED, False, "JobEnded", "", now)
    status = nothing_to_reach(status, "JobEnded", now)
    if status.observed_generation != situation.written.observed_generation:
        status = confirm_phase(status)
    draft.status = status


LINGER = timedelta(seconds=60)
"""Time to end by themselves: MultiWorkerMirrored tasks finish up to 25 s apart."""


def pods_to_remove(situation: Situation) -> tuple[list[Delete], datetime | None]:
    """The pods that an ended job gives up now, and when to look again for those that may still end by themselves."""
    gone = strays(situation)
    policy, ended_at = situation.group_job.spec.clean_pod_policy, situation.status.completion_time
    # If a deadline ended the job, nothing may run on. Then cleanPodPolicy None keeps only pods that have ended.
    if ended_at is None or (policy is CleanPodPolicy.NONE and not ended_by_deadline(situation.status)):
        return gone, None
    linger_until = ended_at + LINGER
    removed, waits = gone, False
    evaluator = evaluator_left(situation)
    for view in situation.views:
        if view is evaluator:
            continue
        for pod in view.pods:
            # A sidecar would keep a pod running for ever after its training has ended.
            if deleting(pod) or (ended(pod) and not kept_by_sidecar(pod) and policy is not CleanPodPolicy.ALL):
                continue
            lingers = situation.status.phase is Phase.SUCCEEDED and not ended(pod) and situation.now < linger_until
            if lingers and _ends_by_itself(situation.group_job, view):
                waits = True
                continue
            removed.append(Delete.of(pod, f"the job has ended (cleanPodPolicy: {policy.value})"))
    return removed, linger_until if waits else None


def _ends_by_itself(job: Job, view: TaskView) -> bool:
    if view.evaluates or job.spec.strategy is not Strategy.PARAMETER_SERVER:
        return True
    # Workers that no chief hands its steps to train by themselves, each to its own end.
    return view.task.role is Role.WORKER and job.spec.replica_specs.chief is None


def deletion(situation: Situation, lingers: bool) -> tuple[list[Delete], datetime | None]:
    """The deletion of the job if its time has come, and else when to look again.

    `lingers`: some of its pods may still end by themselves, and are waited for. An evaluator that has the last
    checkpoint to evaluate is waited for, too.
    """
    status, metadata = situation.status, situation.group_job.metadata
    seconds, ended_at = situation.group_job.spec.ttl_seconds_after_finished, status.completion_time
    if seconds is None or ended_at is None or lingers or evaluator_left(situation) is not None:
        return [], None
    due = ended_at + timedelta(seconds=seconds)
    if situation.now < due:
        return [], due
    outcome = "failed" if status.phase is Phase.FAILED else "succeeded"
    why = f"it {outcome} {seconds} s ago (ttlSecondsAfterFinished)"
    # The field may have been raised, or the job unsuspended, a moment ago: then it is planned for anew.
    return [Delete(KIND, metadata.name, metadata.uid, why, metadata.resource_version)], None
