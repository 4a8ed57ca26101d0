"""Success: the chief task's exit 0 ends the job, whatever the others do; or that of the chief and all workers."""

from __future__ import annotations

from dtjob.api.replica_specs import Role
from dtjob.api.success_policy import SuccessPolicy
from dtjob.plan.actions import Event
from dtjob.plan.children import PodState
from dtjob.plan.report_types import of_the_contract
from dtjob.plan.situation import Situation

NOT_FINITE = "WeightsNotFinite"
"""The reason of the event about a model that nobody can use."""


def succeeded(situation: Situation) -> bool:
    """Whether training has ended well: the chief task exited 0 (worker 0 where there is no chief, as in TFJob); under
    AllWorkers every worker did, and the chief where there is one."""
    needed = [situation.chief]
    if situation.job.spec.success_policy is SuccessPolicy.ALL_WORKERS:
        needed += [view for view in situation.training if view.task.role is Role.WORKER]
    return all(view.state is PodState.SUCCEEDED for view in needed)


def words_of_success(situation: Situation) -> tuple[str, list[Event]]:
    """The message of a job that succeeds, and an event if the chief reports that its weights are no numbers."""
    found = of_the_contract(situation.reports.get(situation.chief.task.id, {})).get("weights")
    if found is None:
        return "training has ended", []
    words = f"training has ended, but the weights of the model hold {found}"
    mend = "look for a loss that is no number, lower the learning rate, or clip gradients"
    return words, [Event("Warning", NOT_FINITE, f"The weights of the model hold {found}: {mend}")]
