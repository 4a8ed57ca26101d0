# SPDX-License-Identifier: Apache-2.0
"""What `dtjob explain` says of a job's life: suspension, queue, deadlines, elastic workers, its stay after the end."""

from dtjob.api.counted import counted
from dtjob.api.job import Job
from dtjob.objects import kueue
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.times import duration


def life(job: Job, defaults: Defaults = NO_DEFAULTS) -> list[str]:
    """One line for each thing that holds for the job."""
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
