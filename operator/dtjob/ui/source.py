# SPDX-License-Identifier: Apache-2.0
"""Where a page has its jobs from: a cluster, or a run on this machine."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dtjob.ui.hub import Hub, Key

Object = Mapping[str, Any]
MOST_LINES = 200
"""Of a log."""
LONGEST_LINE = 2000
"""Characters of a line of a log that are shown."""


class View(Protocol):
    """One job, for the time in which a browser shows it."""

    @property
    def pods(self) -> Sequence[Object]:
        """The pods of the job."""

    @property
    def reports(self) -> Mapping[str, Object]:
        """Task to what its supervisor has said."""

    @property
    def why(self) -> str:
        """Why a task could not be asked for its step."""

    @property
    def note(self) -> str:
        """Where the curves are from, in words."""

    def log(self) -> list[str]:
        """The last lines of the task's log."""

    def curves(self) -> list[dict[str, Any]]:
        """The curves of the job."""


class Source(Protocol):
    """Jobs, and a view of each."""

    hub: Hub
    title: str
    """Which jobs these are."""

    def view(self, key: Key, task: str | None) -> View:
        """The job with the log of this task, by default of the one that decides success. Raises ClientError, and
        BadInput on what is no task. Whoever asks for a view closes it."""

    def close(self, view: View) -> None:
        """A browser shows the view no more."""
