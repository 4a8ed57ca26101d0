# SPDX-License-Identifier: Apache-2.0
"""Draft: the plan of one job while it is made. Each policy reads it and adds to it what is to be done."""

from collections.abc import Iterable
from datetime import datetime

from dtjob.api.status.status import Status
from dtjob.plan.actions import Action, Event
from dtjob.plan.seen.situation import Situation


class Draft:
    """What is observed, the status that the job is to have, and the actions, Events and times of the plan.

    It is made and read within one call of `plan`.
    """

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        """What is observed, seen with the attempts and the group of `status`."""
        self.actions: list[Action] = []
        self.events: list[Event] = []
        self.times: list[datetime | None] = []
        """When time alone may change the plan. None stands for never."""
        self.events_of = ""
        """The uid of a pod whose own events are to be read."""

    @property
    def status(self) -> Status:
        """The status that the job is to have."""
        return self.situation.status

    @status.setter
    def status(self, status: Status) -> None:
        if status is not self.situation.status:
            self.situation = self.situation.with_status(status)

    @property
    def now(self) -> datetime:
        """The time of the plan."""
        return self.situation.now

    def do(self, actions: Iterable[Action]) -> None:
        """Add actions."""
        self.actions.extend(actions)

    def add_event(self, type_: str, reason: str, message: str) -> None:
        """Add an event; `type_` is Normal or Warning."""
        self.events.append(Event(type_, reason, message))

    def look_again(self, *times: datetime | None) -> None:
        """Add moments at which to plan again."""
        self.times.extend(times)
