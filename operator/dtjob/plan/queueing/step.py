# SPDX-License-Identifier: Apache-2.0
"""What the queue of a job asks for in one plan."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dtjob.plan.actions import Action, Create, Event
from dtjob.plan.draft import Draft
from dtjob.plan.lifetime.suspension import Pause


@dataclass(frozen=True)
class Queueing:
    """What the queue has to do with the job now. `pause`: it is to have no pods, for this reason; None: it may have
    them."""

    pause: Pause | None = None
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    look_again_at: datetime | None = None


FREE = Queueing()  # the queue has nothing to say


def ask_queue(draft: Draft, queued: Queueing) -> None:
    """Add what the queue asks for, last: a Kueue that does not answer holds nothing else up.

    For a job that has just ended nothing is made any more. Its Workload is told in the next plan, which comes at once.
    """
    ends = draft.status.ended and not draft.situation.written.ended
    draft.do(one for one in queued.actions if not (ends and isinstance(one, Create)))
    draft.events += queued.events
    draft.look_again(queued.look_again_at)
    draft.at_once = ends and draft.status.queue is not None
