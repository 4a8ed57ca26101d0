"""What one look at a job's queue comes to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from dtjob.plan.actions import Action, Event, Read
from dtjob.plan.policies.suspension import Pause
from dtjob.plan.situation import Situation


@dataclass(frozen=True)
class Queueing:
    """What the queue has to do with the job now. `pause`: it is to have no pods, for this reason; None: it may have
    them. `read`: objects to ask for before anything can be said."""

    pause: Pause | None = None
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    read: Read = ()
    look_again_at: datetime | None = None


Step = tuple[Situation, Queueing]
FREE = Queueing()  # the queue has nothing to say
