# SPDX-License-Identifier: Apache-2.0
"""What `dtjob explain` says of a job's checkpoints, of where its pods go, and of its life: a line for each thing."""

import json
from collections.abc import Iterator

from dtjob.api.job import Job
from dtjob.api.spec.checkpoint import BestMode, Checkpoint
from dtjob.api.spec.volume_claim import Retention
from dtjob.api.words import counted
from dtjob.objects import gangs, kueue, shared, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.objects.pod.storage import keeping, mounting_problem
from dtjob.times import duration


def checkpoints(job: Job, defaults: Defaults) -> list[str]:
    """Where, when and for how long training is saved."""
    checkpoint = job.spec.checkpoint
    if checkpoint is None:
        return ["  none: a restart begins again at step 0"]
    storage = checkpoint.storage
    lines = [f"  directory  {checkpoint.directory}"]
    if storage.volume:
        lines.append(f"  volume     {json.dumps(storage.volume)}, mounted on {storage.mount_on.value}")
    if template := storage.volume_claim_template:
        size, modes = template.spec.resources.requests["storage"], ", ".join(template.spec.access_modes)
        lines.append(f"  claim      {shared.claim_name(job)}, {size}, {modes}, mounted on {storage.mount_on.value}")
        then = "stays" if storage.retention is Retention.RETAIN else "is deleted"
        lines.append(f"  claim      {then} when the job is deleted")
    lines += _saves(job, checkpoint)
    kept = keeping(job, defaults)
    warnings = (kept.message if kept else "", mounting_problem(job))
    lines += [f"  warning    {warning}" for warning in warnings if warning]
    return lines


def placement(job: Job, defaults: Defaults) -> list[str]:
    """Where the pods go, and whether they go there together."""
    scheduling, provider, lines = job.spec.scheduling, gangs.provider_of(job, defaults), []
    if provider is not None:
        needed, count = gangs.min_available(job), len(gangs.members(job))
        volcano = scheduling.gang.volcano if scheduling.gang else None
        where = f" in queue {volcano.queue}" if volcano and volcano.queue else ""
        lines.append(f"  gang       {provider.value}{where}: {needed} of {count} pods are bound at once, or none")
    if scheduling.topology and scheduling.topology.required:
        lines.append(f"  topology   all pods that train on nodes of one {scheduling.topology.required}")
    if scheduling.topology and scheduling.topology.preferred:
        lines.append(
            f"  topology   pods that train on nodes of one {scheduling.topology.preferred}, where there is room"
        )
    if scheduling.priority_class_name:
        lines.append(f"  priority   {scheduling.priority_class_name}")
    return lines or ["  each pod is bound by itself, anywhere"]


def life(job: Job, defaults: Defaults = NO_DEFAULTS) -> list[str]:
    """Suspension, queue, deadlines, elastic workers, and the stay after the end."""
    spec, queue = job.spec, kueue.queue_of(job)
    if not spec.is_ours:
        return [f"  managed by {spec.managed_by}: dtjob leaves the job alone"]
    lines = ["  suspended: none of the above is made until spec.suspend is false"] if spec.suspend else []
    if queue is not None:
        asks = f"its Workload asks for {kueue.needs(job, defaults)}"
        lines.append(f"  waits in queue {queue} until Kueue admits it, before any of the above is made; {asks}")
    if spec.start_deadline_seconds is not None:
        lines.append(f"  fails unless all tasks that train run within {duration(spec.start_deadline_seconds)}")
    if spec.active_deadline_seconds is not None:
        lines.append(f"  fails when it was active for {duration(spec.active_deadline_seconds)}, suspension not counted")
    stalled = spec.failure_policy.stall_timeout_seconds
    if stalled is not None:
        lines.append(
            f"  restarts after {duration(stalled)} without a new step (Stalled), counted by maxRestartsWithoutProgress"
        )
    if spec.ttl_seconds_after_finished is not None:
        lines.append(f"  is deleted {duration(spec.ttl_seconds_after_finished)} after its end")
    return [*elastic(job), *(lines or ["  no deadline, and it stays after its end"])]


def elastic(job: Job) -> list[str]:
    """One line for each thing that holds for the job's workers; none where their number stays."""
    worker, policy = job.spec.replica_specs.worker, job.spec.elastic_policy
    if worker is None or policy is None:
        return []
    most = f" to {policy.max_replicas}" if policy.max_replicas else " on"
    bounds = f"from {policy.min_replicas or 1}{most}"
    scale = f"kubectl scale dtjob/{job.metadata.name} --replicas=N"
    lines = [
        f"  {counted(worker.replicas, 'worker')}, elastic {bounds} ({scale}): "
        "each change saves and goes on at that checkpoint"
    ]
    if policy.min_replicas is None:
        return [*lines, "  never trains with fewer than that: without minReplicas it waits for room"]
    shrinks = f"without room for all of them for {duration(policy.schedule_timeout_seconds)} trains with what there is"
    again = f"looks for room for the others {duration(policy.grow_period_seconds)} later, with placeholder pods"
    return [*lines, f"  {shrinks}, at least {policy.min_replicas}; {again}"]


def _saved(checkpoint: Checkpoint) -> Iterator[str]:
    """When training is saved, by each field that says so."""
    match checkpoint.every_epochs:
        case None:
            yield "at the end of an epoch, 30 s or more after the last save"
        case 1:
            yield "at the end of each epoch"
        case epochs if epochs:
            yield f"every {epochs} epochs"
    if checkpoint.every_steps:
        yield f"every {checkpoint.every_steps} steps"
    if checkpoint.every_seconds:
        yield f"{checkpoint.every_seconds} s after the last save"


def _saves(job: Job, checkpoint: Checkpoint) -> list[str]:
    """What is saved when, and what is kept of it."""
    if job.spec.program is None:
        return ["  saved      by the program itself"]
    lines = [f"  saved      {when}" for when in list(_saved(checkpoint)) or ["at the end of training only"]]
    lines.append(f"  kept       the newest {checkpoint.max_to_keep}")
    if checkpoint.keep_every_steps:
        lines.append(f"  kept       the first at or after each multiple of {checkpoint.keep_every_steps} steps")
    best = job.spec.evaluation.best if job.spec.evaluation else None
    which = f"with the {'highest' if best.mode is BestMode.MAX else 'lowest'} {best.metric}" if best else ""
    if checkpoint.keep_best:
        lines.append(f"  kept       the {checkpoint.keep_best} {which} of those that are evaluated")
    if best and best.keep_model:
        lines.append(f"  kept       the model {which}, as best.keras")
    if board := job.spec.tensor_board:
        lines.append(
            f"  events     {checkpoint.directory}/events/train, for TensorBoard, every {board.every_steps} steps"
        )
    if board and board.profile:
        last = board.profile.first_step + board.profile.steps - 1
        lines.append(f"  profile    steps {board.profile.first_step} to {last} of {topology.chief_task(job).id}")
    return lines
