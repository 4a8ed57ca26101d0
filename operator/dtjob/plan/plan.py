"""`plan`: from what a job should be and what is observed to what to do now. Pure; the heart of dtjob.

One call decides everything about one job, as the Kubernetes Job controller's syncJob does: nothing depends on how the
state came about. The new status is written before any action; so a crash at any point only repeats calls that are
safe to repeat.
"""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime
from typing import Any

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.replicas import Role
from dtjob.objects import labels, shared, topology
from dtjob.objects.defaults import IMAGE_MISSING, MISSING_IMAGE_MESSAGE, NO_DEFAULTS, Defaults, image_of, lacks_image
from dtjob.objects.pod import pod
from dtjob.plan import conditions, progress
from dtjob.plan.actions import Action, Create, Delete, Event, Plan, StopServing
from dtjob.plan.children import Children, PodState, TaskView, deleting, ended, finished, lost_at, view_tasks
from dtjob.plan.policies.cleanup import pods_to_remove
from dtjob.plan.policies.incident import Incident
from dtjob.plan.policies.pending import waiting_reason
from dtjob.plan.policies.restart import Decision, failures, restart_evaluator, restart_training, trains_without
from dtjob.plan.policies.success import succeeded
from dtjob.plan.status import bump_attempts, count_restart, replica_statuses, set_phase

ENDED = ("Succeeded", "Failed")


def plan(job: Job, children: Children, now: datetime, defaults: Defaults = NO_DEFAULTS) -> Plan:
    """What to do for `job` now, given what is observed of its children. `defaults` are for what the job leaves out.

    Idempotent: planning again on the plan's own outcome gives nothing more to do. Touches only objects whose
    controller is this very job (by uid).
    """
    status = deepcopy(job.status)
    views = view_tasks(job, children, status.get("attempts", {}))
    reports = progress.final_reports(job, views, children.reports)
    status |= progress.progress_status(job, status, reports, now)
    status["observedGeneration"] = job.metadata.generation
    status.setdefault("restarts", {"total": 0})
    if status.get("phase") in ENDED:
        return _after_the_end(job, status, views, [], now)
    if lacks_image(job, defaults):
        return _without_image(job, status, views, now)
    if job.spec.image is None and (image := image_of(job, defaults)):
        status["image"] = image
    if succeeded(job, views, now):
        set_phase(status, "Succeeded", "Completed", "training has ended", now)
        return _after_the_end(job, status, views, [Event("Normal", "Succeeded", "Training has ended")], now)
    failed = failures(job, views, bool(status.get("allCreated")), now)
    incident = Incident.from_status(status)
    decision = restart_training(job, views, failed, incident, progress.checkpoint_step(status), now)
    if decision.gives_up:
        assert decision.first
        status["firstFailure"] = decision.first.as_status()
        set_phase(status, "Failed", "MaxRestartsExceeded", decision.gives_up, now)
        return _after_the_end(job, status, views, [Event("Warning", "Failed", decision.gives_up)], now)
    evaluator = restart_evaluator(job, views, failed, decision.replaced, now)
    events = [*_restart(job, status, decision), *_restart_evaluator(status, evaluator)]
    views = view_tasks(job, children, status.get("attempts", {}))
    actions, created = _converge(job, status, views, children, defaults, now)
    status["allCreated"] = created
    events += _describe(job, status, views, children, now)
    times_to_look = [decision.look_again_at, evaluator.look_again_at, *_time_alone(status, views, now)]
    return _finish(job, status, actions, events, times_to_look, now)


def _restart(job: Job, status: dict[str, Any], decision: Decision) -> list[Event]:
    """Write the restart of training tasks ahead into the status."""
    if not decision.replaced or decision.incident is None:
        return []
    bump_attempts(status, decision.replaced)
    status["incident"] = decision.incident.as_status()
    count_restart(status, decision.incident.cause, None if decision.new else decision.previous_cause)
    if decision.first is None:
        return []
    status["firstFailure"] = decision.first.as_status()
    if trains_without(job, decision.replaced):
        consequence = "training goes on without it until it is back"
    else:
        step = progress.checkpoint_step(status)
        consequence = f"training restarts from the checkpoint at step {step}" if step >= 0 else "training restarts"
    return [Event("Warning", "Restarting", f"{decision.first.sentence()}; {consequence}")]


def _restart_evaluator(status: dict[str, Any], decision: Decision) -> list[Event]:
    if not decision.replaced:
        return []
    bump_attempts(status, decision.replaced)
    if decision.first is None:
        return [Event("Normal", "EvaluatorRestarting", "The evaluator moves with the chief, whose volume it mounts")]
    counts = status["restarts"]
    counts["evaluator"] = counts.get("evaluator", 0) + 1
    return [Event("Warning", "EvaluatorRestarting", f"{decision.first.sentence()}; training goes on")]


def _converge(
    job: Job, status: dict[str, Any], views: list[TaskView], children: Children, defaults: Defaults, now: datetime
) -> tuple[list[Action], bool]:
    """Calls that bring the children to what the status says; and whether every current attempt has its pod already."""
    actions: list[Action] = []
    for view in views:
        actions += _retire(job, view)
    for manifest in shared.shared_objects(job):
        name = manifest["metadata"]["name"]
        if not any(child["metadata"]["name"] == name for child in children.owned(job, manifest["kind"])):
            actions.append(Create(manifest))
    incident = Incident.from_status(status)
    missing = [view for view in views if view.pod is None]
    chief_attempt = status.get("attempts", {}).get(topology.chief_task(job).id, 0)
    if incident is None or now >= incident.not_before:
        for view in missing:
            if _may_create(job, view):
                actions.append(Create(pod(job, view.task, view.attempt, defaults, chief_attempt)))
    return actions, not missing


def _without_image(job: Job, status: dict[str, Any], views: list[TaskView], now: datetime) -> Plan:
    """Start nothing, and say which field to write; an operator with a default image goes on from here."""
    told = status.get("reason") == IMAGE_MISSING
    set_phase(status, "Pending", IMAGE_MISSING, MISSING_IMAGE_MESSAGE, now)
    status["ready"] = f"0/{len(views)}"
    status["replicaStatuses"] = replica_statuses(views, now)
    status["conditions"] = conditions.with_condition(
        status["conditions"], conditions.BLOCKED, True, IMAGE_MISSING, MISSING_IMAGE_MESSAGE, now
    )
    events = [] if told else [Event("Warning", IMAGE_MISSING, MISSING_IMAGE_MESSAGE)]
    return _finish(job, status, [], events, [], now)


def _retire(job: Job, view: TaskView) -> list[Action]:
    """Take earlier attempts out of service and away."""
    actions: list[Action] = []
    for old in view.pods:
        if labels.attempt(old) >= view.attempt:
            continue
        name, uid = old["metadata"]["name"], old["metadata"]["uid"]
        if labels.SERVING in labels.of(old) and not finished(old):
            actions.append(StopServing(name, uid))
        if not deleting(old):
            actions.append(Delete("Pod", name, uid, f"{view.task.id} is at attempt {view.attempt}"))
    return actions


def _may_create(job: Job, view: TaskView) -> bool:
    """The task that writes checkpoints is never there twice; any other need not wait for a predecessor that is
    stuck."""
    return view.task != topology.chief_task(job) or all(ended(old) for old in view.pods)


def _describe(
    job: Job, status: dict[str, Any], views: list[TaskView], children: Children, now: datetime
) -> list[Event]:
    """Set phase, conditions and counts; the event is for a job that has just become blocked."""
    blocked = "; ".join(f"{what}: {why}" for what, why in sorted(children.problems.items())[:3])
    was_blocked = status.get("reason") == "Blocked"
    states = {view.task: view.state(now) for view in views}
    absent = [task for task, state in states.items() if state not in (PodState.RUNNING, PodState.SUCCEEDED)]
    absent = [task for task in absent if task.role is not Role.EVALUATOR]
    started_before = any(c["type"] == conditions.RUNNING for c in status.get("conditions", []))
    running = not absent or (started_before and trains_without(job, absent))
    status["ready"] = _ready(views, now)
    status["replicaStatuses"] = replica_statuses(views, now)
    if running:
        set_phase(status, "Running", "AllTasksRunning", waiting_reason(views, now), now)
    elif started_before or "incident" in status:
        first = status.get("firstFailure", {})
        message = f"{first.get('task', 'a task')} {first.get('reason', 'failed')}"
        incident = Incident.from_status(status)
        if incident is not None and now < incident.not_before:
            message += f"; the next start is at {times.rfc3339(incident.not_before)} (failurePolicy.backoff)"
        set_phase(status, "Restarting", first.get("cause", "Restarting"), waiting_reason(views, now) or message, now)
    else:
        set_phase(status, "Pending", "WaitingForPods", waiting_reason(views, now), now)
    if blocked:
        status["reason"], status["message"] = "Blocked", blocked
    status["conditions"] = conditions.with_condition(
        status["conditions"], conditions.BLOCKED, bool(blocked), "CannotCreate" if blocked else "Created", blocked, now
    )
    return [Event("Warning", "Blocked", blocked)] if blocked and not was_blocked else []


def _ready(views: list[TaskView], now: datetime) -> str:
    ready = sum(view.state(now) in (PodState.RUNNING, PodState.SUCCEEDED) for view in views)
    return f"{ready}/{len(views)}"


def _time_alone(status: dict[str, Any], views: list[TaskView], now: datetime) -> list[datetime | None]:
    """Moments at which a plan can change though nothing happened."""
    incident = Incident.from_status(status)
    due: list[datetime | None] = [incident.not_before if incident else None]
    due += [lost_at(view.pod) for view in views if view.pod is not None]
    return due


def _after_the_end(job: Job, status: dict[str, Any], views: list[TaskView], events: list[Event], now: datetime) -> Plan:
    """An ended job only gives up its pods."""
    completed_at = times.parse(status["completionTime"])
    if status["phase"] == "Failed":  # a success keeps what trained it, though its pods may be removed
        status["ready"] = _ready(views, now)
    status["replicaStatuses"] = replica_statuses(views, now)
    status["conditions"] = conditions.with_condition(
        status["conditions"], conditions.BLOCKED, False, "JobEnded", "", now
    )
    removed, look_again_at = pods_to_remove(job, views, status["phase"] == "Succeeded", completed_at, now)
    return _finish(job, status, list(removed), events, [look_again_at], now)


def _finish(
    job: Job,
    status: dict[str, Any],
    actions: list[Action],
    events: list[Event],
    due: list[datetime | None],
    now: datetime,
) -> Plan:
    """Leave the status out where it did not change, or only by progress that was written just now."""
    write = status != job.status
    if write and _without_progress(status) == _without_progress(job.status):
        next_write = progress.next_write(job.status)
        if next_write is not None and now < next_write:
            write, due = False, [*due, next_write]
    later = [moment for moment in due if moment is not None and moment > now]
    return Plan(tuple(actions), status if write else None, tuple(events), min(later, default=None))


def _without_progress(status: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in status.items() if name not in progress.PROGRESS_FIELDS}
