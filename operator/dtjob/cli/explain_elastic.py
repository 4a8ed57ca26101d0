"""What `dtjob explain` says of elastic workers: how many there may be, and when dtjob changes that by itself."""

from __future__ import annotations

from dtjob.api.job import Job
from dtjob.api.run_policy import Elasticity
from dtjob.plan.progress import duration


def elastic(job: Job) -> list[str]:
    """One line for each thing that holds for the job's workers; none where their number stays."""
    worker, policy = job.spec.replicas.worker, job.spec.run_policy.elasticity or Elasticity()
    if worker is None or not worker.elastic:
        return []
    bounds = f"from {worker.min or 1}" + (f" to {worker.max}" if worker.max else " on")
    scale = f"kubectl scale dtjob/{job.metadata.name} --replicas=N"
    lines = [f"  {worker.count} workers, elastic {bounds} ({scale}): each change saves and goes on at that checkpoint"]
    if worker.min is None:
        return [*lines, "  never trains with fewer than that: without min it waits for room"]
    shrinks = f"without room for all of them for {duration(policy.schedule_deadline_seconds)} trains with what there is"
    again = f"looks for room for the others {duration(policy.grow_period_seconds)} later, with placeholder pods"
    return [*lines, f"  {shrinks}, at least {worker.min}; {again}"]
