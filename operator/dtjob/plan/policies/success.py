"""Success: the chief task's exit 0 ends the job, whatever the others do."""

from __future__ import annotations

from datetime import datetime

from dtjob.api.job import Job
from dtjob.objects import topology
from dtjob.plan.children import PodState, TaskView


def succeeded(job: Job, views: list[TaskView], now: datetime) -> bool:
    """Whether training has ended well: the chief task exited 0 (worker 0 where there is no chief, as in TFJob)."""
    chief = topology.chief_task(job)
    return any(view.task == chief and view.state(now) is PodState.SUCCEEDED for view in views)
