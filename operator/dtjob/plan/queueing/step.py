"""What one look at a job's queue comes to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from dtjob.api.phase import ENDED
from dtjob.plan.actions import Action, Create, Event, Plan
from dtjob.plan.lifetime.suspension import Pause
from dtjob.plan.seen.situation import Situation


@dataclass(frozen=True)
class Queueing:
    """What the queue has to do with the job now. `pause`: it is to have no pods, for this reason; None: it may have
    them."""

    pause: Pause | None = None
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    look_again_at: datetime | None = None


Step = tuple[Situation, Queueing]
FREE = Queueing()  # the queue has nothing to say


def joined(decided: Plan, queued: Queueing, situation: Situation) -> Plan:
    """The plan with what the queue asks for, last: a Kueue that does not answer holds nothing else up.

    Of a job that has ended just now nothing is made any more, and its Workload is told next, for which nothing else
    need happen.
    """
    ends = not situation.status.ended and (decided.status or {}).get("phase") in ENDED
    next_step = situation.now if ends and situation.status.queue is not None else None
    due = [one for one in (decided.look_again_at, queued.look_again_at, next_step) if one is not None]
    asked = (one for one in queued.actions if not (ends and isinstance(one, Create)))
    return replace(
        decided,
        actions=(*decided.actions, *asked),
        events=(*decided.events, *queued.events),
        look_again_at=min(due, default=None),
    )
