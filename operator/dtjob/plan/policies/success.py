"""Success: the chief task's exit 0 ends the job, whatever the others do; or that of the chief and all workers."""

from __future__ import annotations

from dtjob.api.replica_specs import Role
from dtjob.api.success_policy import SuccessPolicy
from dtjob.plan.children import PodState
from dtjob.plan.situation import Situation


def succeeded(situation: Situation) -> bool:
    """Whether training has ended well: the chief task exited 0 (worker 0 where there is no chief, as in TFJob); under
    AllWorkers every worker did, and the chief where there is one."""
    needed = [situation.chief]
    if situation.job.spec.success_policy is SuccessPolicy.ALL_WORKERS:
        needed += [view for view in situation.training if view.task.role is Role.WORKER]
    return all(view.state is PodState.SUCCEEDED for view in needed)
