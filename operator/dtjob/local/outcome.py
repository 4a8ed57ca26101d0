# SPDX-License-Identifier: Apache-2.0
"""When a run is over, and what has become of its job then: as the plan judges it. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dtjob.api.job import Job
from dtjob.api.phase import ENDED, Phase
from dtjob.local.display.snapshot import Snapshot
from dtjob.local.here import DEFAULTS
from dtjob.objects.manifest import Manifest
from dtjob.plan.lifetime.ending import evaluator_left
from dtjob.plan.lifetime.time_spent import with_goodput
from dtjob.plan.plan import plan
from dtjob.plan.seen import children
from dtjob.plan.seen.children import Children, Unread
from dtjob.plan.seen.situation import Situation


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `interrupted` is the number of the signal that stopped it, None if it ended by itself."""

    snapshot: Snapshot
    interrupted: int | None


def active(pods: Iterable[Manifest]) -> list[Manifest]:
    """The pods whose process may still run."""
    return [pod for pod in pods if not children.ended(pod)]


def is_over(job: Job, status: dict[str, Any], observed: Children, now: datetime) -> bool:
    """Whether an ended job's last process is gone: others than the chief may still have something to write, and an
    evaluator that has failed gets another try."""
    if status.get("phase") not in ENDED or active(observed.owned_pods(job)):
        return False
    return evaluator_left(Situation.of(job.model_copy(update={"status": status}), observed, now)) is None


def success_while_stopped(job: Job, status: dict[str, Any], observed: Children, now: datetime) -> dict[str, Any] | None:
    """The status of a job whose training ended well while it was being stopped; None if it did not.

    `status` is the last that was written. No plan is carried out any more then, but its judgement of the chief counts;
    that of the others does not, which were told to end.
    """
    try:
        planned = plan(job.model_copy(update={"status": status}), observed, now, DEFAULTS).status or status
    except Unread:  # a process is gone, and its exit code with it
        return None
    return planned if planned.get("phase") == Phase.SUCCEEDED else None


def when_stopped(job: Job, status: dict[str, Any], observed: Children, now: datetime) -> dict[str, Any]:
    """The status of a job that was stopped by a signal, with its goodput counted until `now`, by its chief's last word.

    `status` is the last that was written, some seconds ago. What is left after that word is unknown, as it is when a
    job is suspended.
    """
    situation = Situation.of(job.model_copy(update={"status": status}), observed, now)
    counted = with_goodput(situation, situation.written.but(phase=Phase.SUSPENDED))
    if counted.goodput is None:
        return status
    return counted.but(phase=situation.written.phase).to_json()
