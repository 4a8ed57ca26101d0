# SPDX-License-Identifier: Apache-2.0
"""Tasks that cannot reach each other: which of them a task waits for in vain, once that has lasted for some time.

Under a NetworkPolicy without egress all pods run, and no registration ever arrives. The chief task then waits for the
others, and the others cannot reach the chief task. Pure: takes `now`. supervisor.py writes the lines and the status.
"""

from collections.abc import Callable, Mapping

from dtjob_trainer.contract.task import Task

SAID_AFTER_SECONDS = 30.0
"""A pod that starts, and a name server that learns of it, take less."""
MOST_TOLD = 8
"""How many tasks a status names."""

_ADVICE = (
    "if its pod runs, look for a NetworkPolicy or a service mesh that keeps the job's pods from each other or from the "
    "cluster's DNS"
)


class Unreached:
    """What one supervisor knows about tasks that it cannot reach."""

    def __init__(self, task: Task, unheard: Callable[[float], Mapping[str, str]]) -> None:
        """`unheard(seconds)`: at the chief task, the tasks that its group waits for and has not heard for so long, with
        what is known of the reason."""
        self._task, self._unheard = task, unheard
        self._waits_since: float | None = None
        self._fails_since: float | None = None
        self._problem = ""
        self._said = False

    def waits(self, now: float) -> None:
        """A training process begins to wait for its go."""
        self._waits_since = now

    def goes(self) -> None:
        """The training process has got its go, or has ended."""
        self._waits_since = None

    def failed(self, problem: str, now: float) -> str:
        """A report did not reach the chief task's supervisor. Returns a line for the log, empty if there is none."""
        self._problem = problem
        self._fails_since = now if self._fails_since is None else self._fails_since
        return self._news(now)

    def answered(self, now: float) -> str:
        """The chief task's supervisor has answered. Returns a line for the log, empty if there is none."""
        self._fails_since = None
        return self._news(now)

    def found(self, now: float) -> dict[str, str]:
        """The tasks that could not be reached for SAID_AFTER_SECONDS, each with the reason. It may be empty."""
        since = self._waits_since if self._task.is_chief else self._fails_since
        if since is None or now - since < SAID_AFTER_SECONDS:
            return {}
        if not self._task.is_chief:
            return {self._task.members[0]: self._problem}
        return dict(list(self._unheard(SAID_AFTER_SECONDS).items())[:MOST_TOLD])

    def _news(self, now: float) -> str:
        found, before = self.found(now), self._said
        self._said = bool(found)
        if not found or before:
            return ""
        if not self._task.is_chief:
            where = f"the chief task's supervisor at {self._task.rendezvous}"
            return f"cannot reach {where} for {SAID_AFTER_SECONDS:g} s: {self._problem}; {_ADVICE}"
        named = ", ".join(f"{task} ({why})" if why else task for task, why in found.items())
        return f"waiting for {SAID_AFTER_SECONDS:g} s without a report of {named}; {_ADVICE}"
