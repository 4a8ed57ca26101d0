# SPDX-License-Identifier: Apache-2.0
"""A supervisor's part in its group's rendezvous: host, member, or neither for a task outside a cluster."""

import asyncio
from collections.abc import Callable

from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.client import HttpAsk, RendezvousClient
from dtjob_trainer.rendezvous.host import RendezvousHost, rendezvous_of
from dtjob_trainer.rendezvous.messages import Answer, Registration


class Member:
    """Reports a task to its rendezvous, which the chief task's member hosts. Does nothing outside a cluster."""

    def __init__(
        self,
        task: Task,
        supervisor: str,
        describe: Callable[[], Registration],
        on_answer: Callable[[Registration, Answer], None],
        on_problem: Callable[[str], None],
    ) -> None:
        """`supervisor`: the id of this supervisor process. The other arguments are those of RendezvousClient.

        Raises TaskError if the environment does not say where the rendezvous is.
        """
        self.host: RendezvousHost | None = None
        """The rendezvous, in the chief task of a group."""
        self._client: RendezvousClient | None = None
        self._reporting: asyncio.Task[None] | None = None
        if task.in_cluster:
            self.host = rendezvous_of(task, supervisor) if task.is_chief else None
            ask = self.host.answer_own if self.host else HttpAsk(task.rendezvous, len(task.members))
            self._client = RendezvousClient(ask, describe, on_answer, on_problem)

    def report(self, group: asyncio.TaskGroup) -> None:
        """Report from now on, in `group`. Further calls change nothing."""
        if self._client and self._reporting is None:
            self._reporting = group.create_task(self._client.run())

    def news(self) -> None:
        """Something about this task has changed: report at once."""
        if self._client:
            self._client.news()

    def leave(self) -> None:
        """Stop reporting."""
        if self._reporting:
            self._reporting.cancel()
