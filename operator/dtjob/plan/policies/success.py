"""Success: the chief task's exit 0 ends the job, whatever the others do."""

from __future__ import annotations

from dtjob.plan.children import PodState
from dtjob.plan.situation import Situation


def succeeded(situation: Situation) -> bool:
    """Whether training has ended well: the chief task exited 0 (worker 0 where there is no chief, as in TFJob)."""
    return situation.chief.state is PodState.SUCCEEDED
