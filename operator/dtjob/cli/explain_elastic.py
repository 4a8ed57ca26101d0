"""What `dtjob explain` says of elastic workers: how many there may be, and when dtjob changes that by itself."""

from __future__ import annotations

from dtjob.api.job import Job
from dtjob.plan.progress import duration


def elastic(job: Job) -> list[str]:
    """One line for each thing that holds for the job's workers; none where their number stays."""
    worker, policy = job.spec.replica_specs.worker, job.spec.elastic_policy
    if worker is None or policy is None:
        return []
    most = f" to {policy.max_replicas}" if policy.max_replicas else " on"
    bounds = f"from {policy.min_replicas or 1}{most}"
    scale = f"kubectl scale dtjob/{job.metadata.name} --replicas=N"
    lines = [
        f"  {worker.replicas} workers, elastic {bounds} ({scale}): each change saves and goes on at that checkpoint"
    ]
    if policy.min_replicas is None:
        return [*lines, "  never trains with fewer than that: without minReplicas it waits for room"]
    shrinks = f"without room for all of them for {duration(policy.schedule_timeout_seconds)} trains with what there is"
    again = f"looks for room for the others {duration(policy.grow_period_seconds)} later, with placeholder pods"
    return [*lines, f"  {shrinks}, at least {policy.min_replicas}; {again}"]
