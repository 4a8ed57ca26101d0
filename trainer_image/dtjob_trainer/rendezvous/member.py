# SPDX-License-Identifier: Apache-2.0
"""A supervisor's part in its group's rendezvous: host, member, or neither for a task outside a cluster."""

import asyncio
from collections.abc import Awaitable, Callable

from dtjob_trainer.contract.task import Task
from dtjob_trainer.rendezvous.client import HttpAsk, RendezvousClient
from dtjob_trainer.rendezvous.host import RendezvousHost, rendezvous_of
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.rendezvous.records import Crashes


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
        self._host: RendezvousHost | None = None
        self._client: RendezvousClient | None = None
        self._reporting: asyncio.Task[None] | None = None
        if task.in_cluster:
            self._host = rendezvous_of(task, supervisor) if task.is_chief else None
            ask = self._host.answer_own if self._host else HttpAsk(task.rendezvous, len(task.members))
            self._client = RendezvousClient(ask, describe, on_answer, on_problem)

    @property
    def answer(self) -> Callable[[Registration, str], Awaitable[Answer]] | None:
        """Answers the reports of other tasks. None if another supervisor does that."""
        return self._host.answer if self._host else None

    def report(self, group: asyncio.TaskGroup) -> None:
        """Report from now on, in `group`. Further calls change nothing."""
        if self._client and self._reporting is None:
            self._reporting = group.create_task(self._client.run())

    def news(self) -> None:
        """Something about this task has changed: report at once."""
        if self._client:
            self._client.news()

    def silent(self, seconds: float) -> dict[str, int]:
        """At the host: tasks that were heard before but not for `seconds`, with their attempts. Elsewhere empty."""
        return self._host.silent(seconds) if self._host else {}

    def unheard(self, seconds: float) -> dict[str, str]:
        """At the host: tasks that the group waits for and has not heard for `seconds`, with reasons. Elsewhere
        empty."""
        return self._host.unheard(seconds) if self._host else {}

    @property
    def crashes(self) -> Crashes | None:
        """At the host: the crashes of the group's training processes. Elsewhere None."""
        return self._host.crashes if self._host else None

    async def finish(self, seconds: float) -> None:
        """At the host: tell all that training is done, and wait until they know, for `seconds` at most."""
        if self._host:
            await self._host.finish(seconds)

    def leave(self) -> None:
        """Stop reporting."""
        if self._reporting:
            self._reporting.cancel()
