"""A supervisor's part in its group's rendezvous: it hosts it, or reports to the one that does, or stands alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.client import HttpAsk, RendezvousClient
from dtjob_trainer.rendezvous.host import RendezvousHost, rendezvous_of
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.rendezvous.records import Crashes


class Member:
    """Reports a task to its rendezvous, which the chief task's member hosts. Does nothing for one outside a cluster."""

    def __init__(
        self,
        task: Task,
        supervisor: str,
        describe: Callable[[], Registration],
        on_answer: Callable[[Registration, Answer], None],
        on_problem: Callable[[str], None],
    ) -> None:
        """`supervisor`: the id of this supervisor process; the others are as RendezvousClient has them.

        Raises TaskError where the environment does not say where the rendezvous is.
        """
        self._host: RendezvousHost | None = None
        self._client: RendezvousClient | None = None
        self._reporting: asyncio.Task[None] | None = None
        if task.in_cluster:
            self._host = rendezvous_of(task, supervisor) if task.is_chief else None
            ask = self._host.answer_own if self._host else HttpAsk(task.rendezvous, len(task.members))
            self._client = RendezvousClient(ask, describe, on_answer, on_problem)

    @property
    def answer(self) -> Callable[[Registration, str], Awaitable[Answer]] | None:
        """Answers what others report; None where another supervisor does."""
        return self._host.answer if self._host else None

    def report(self, group: asyncio.TaskGroup) -> None:
        """Report from now on, in `group`; further calls change nothing."""
        if self._client and self._reporting is None:
            self._reporting = group.create_task(self._client.run())

    def news(self) -> None:
        """Something about this task changed: report at once."""
        if self._client:
            self._client.news()

    def silent(self, seconds: float) -> dict[str, int]:
        """At the host, the attempts at tasks that have not been heard for so long, and were before."""
        return self._host.silent(seconds) if self._host else {}

    @property
    def crashes(self) -> Crashes | None:
        """At the host, those of the group's training processes."""
        return self._host.crashes if self._host else None

    async def finish(self, seconds: float) -> None:
        """At the host, tell all that training is done; wait for `seconds` at most until they know."""
        if self._host:
            await self._host.finish(seconds)

    def leave(self) -> None:
        """Report no longer."""
        if self._reporting:
            self._reporting.cancel()
