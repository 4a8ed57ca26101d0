# SPDX-License-Identifier: Apache-2.0
"""Which lines of a task's log somebody who looks at the run sees: those of the program, and some of dtjob's. Pure."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from dtjob.local.display.snapshot import metrics_text
from dtjob.local.terminal_line import plain

BEGINNING = "time="
"""With which dtjob's lines begin."""
SILENT = "debug"
"""The level of an epoch's line if the program asked for none (`verbose=0`)."""
HOLD_SECONDS = 5.0
"""So long after an error of one process its supervisor says at the latest whether a peer was lost."""
MOST_LINES = 5000
_LINE = re.compile(
    r'time=\d{4}-\d\d-\d\dT\S+ level=(?P<level>\w+)(?: task=\S+)?(?: step=\d+)? message=(?P<message>"(?:[^"\\]|\\.)*")'
    r"(?P<values>.*)$"
)
_VALUE = re.compile(r' ([^\s"=]+)=([-+.\w]+)')
_PLACE = re.compile(r"(?:epoch|step) \d+/\d+")
_OVER = re.compile(r"generation \d+ is over: ")
_RESTARTS = re.compile(r"restarting in place \(\d+\): ")
_ENDS = re.compile(r".*: ending with \d+$", re.DOTALL)
"""Lines of a supervisor that the story of the run tells in its own words."""
_ERROR = re.compile(r"Traceback \(most recent call last\):|[EF]\d{4} \d\d:\d\d:\d+\.\d+ ")
"""How an error of Python and one of TensorFlow's runtime begin."""


class Shown(NamedTuple):
    """A line to show."""

    text: str
    """With its colours, as the program wrote it."""
    ours: bool
    """Whether dtjob says it."""
    restarts: bool = False
    """It shows nothing. The supervisor starts the task's process again, because a task was lost or a signal came."""
    ends: bool = False
    """It shows nothing. The supervisor ends, after the task's process."""


def shown(line: str, *, live: bool) -> list[Shown]:
    """What to show of a line of the log. `live`: a view beside it shows steps and epochs.

    A line of dtjob (contract.md, "Log lines") may begin in the middle: after a progress bar that was killed.
    """
    found = _LINE.search(plain(line)) if "level" in line else None
    if found is None:
        return [Shown(line, ours=False)]
    before = found.string[: found.start()].rstrip()
    said = _ours(found["level"], str(json.loads(found["message"])), found["values"], live=live)
    return [*([Shown(before, ours=False)] if before else []), *([said] if said else [])]


def _ours(level: str, message: str, values: str, *, live: bool) -> Shown | None:
    """What a line of dtjob's says: warnings, errors, epochs and steps are shown."""
    if _ENDS.match(message):
        return Shown("", ours=True, ends=True)
    if _RESTARTS.match(message):
        return Shown("", ours=True, restarts=True)
    if level in ("warning", "error"):
        return None if _OVER.match(message) else Shown(message, ours=True)
    if _PLACE.fullmatch(message) and not (live and level == SILENT):
        numbers = metrics_text({name: _number(value) for name, value in _VALUE.findall(values)})
        return Shown(f"{message}: {numbers}" if numbers else message, ours=True)
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


class ErrorsHeld:
    """Holds back what one task prints from an error on, until its supervisor says what has become of the process."""

    def __init__(self, *, has_peers: bool = True) -> None:
        """`has_peers`: whether the task can lose one. If not, nothing is held back."""
        self._has_peers = has_peers
        self._held: list[Shown] = []
        self._until = 0.0

    def take(self, lines: Sequence[Shown], now: float) -> list[Shown]:
        """The lines to show now, in order. `now`: of any monotonic clock, in seconds."""
        found = []
        for line in lines:
            if line.restarts:
                if count := len(self.release()):
                    said = f"{count} lines about the lost task are left out here; the log has them"
                    found.append(Shown(said, ours=True))
            elif line.ends:
                found += self.release()
            elif self._held:
                self._held.append(line)
            elif self._has_peers and not line.ours and _ERROR.match(plain(line.text)):
                self._held, self._until = [line], now + HOLD_SECONDS
            else:
                found.append(line)
        if self._held and (now >= self._until or len(self._held) > MOST_LINES):
            found += self.release()
        return found

    def release(self) -> list[Shown]:
        """What is held back, to show it."""
        held, self._held = self._held, []
        return held
