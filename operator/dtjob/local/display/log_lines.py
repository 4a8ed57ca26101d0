# SPDX-License-Identifier: Apache-2.0
"""Which lines of a task's log somebody who looks at the run sees: those of the program, and some of dtjob's. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from dtjob.local.display.metrics import metrics_text
from dtjob.local.display.terminal_line import plain

_LOGFMT = re.compile(
    r'time=\d{4}-\d\d-\d\dT\S+ level=(?P<level>\w+)(?: task=\S+)?(?: step=\d+)? message=(?P<message>"(?:[^"\\]|\\.)*")'
    r"(?P<values>.*)$"
)
_JSON = re.compile(r'\{"time": "\d{4}-\d\d-\d\dT[^"]+", "level": "\w+", .*\}$')
BEGINNINGS = ("time=", '{"time": ')
"""With which dtjob's lines begin."""
_VALUE = re.compile(r' ([^\s"=]+)=(\S+)')
_FIXED = ("time", "level", "task", "step", "message")
_PLACE = re.compile(r"(?:epoch|step) \d+/\d+")
_OVER = re.compile(r"generation \d+ is over: ")
_RESTARTS = re.compile(r"restarting in place \(\d+\): ")
_ENDS = re.compile(r".*: ending with \d+$", re.DOTALL)
"""Lines of a supervisor that the story of the run tells in its own words."""
SILENT = "debug"
"""The level of an epoch's line if the program asked for none (`verbose=0`)."""


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
    if "level" not in line:
        return [Shown(line, ours=False)]
    text = plain(line)
    found = _LOGFMT.search(text) or _JSON.search(text)
    if found is None:
        return [Shown(line, ours=False)]
    before = text[: found.start()].rstrip()
    said = _ours(*_parts(found), live=live)
    return [*([Shown(before, ours=False)] if before else []), *([said] if said else [])]


def _ours(level: str, message: str, values: Mapping[str, Any], *, live: bool) -> Shown | None:
    """What a line of dtjob's says: warnings, errors, epochs and steps are shown."""
    if _ENDS.match(message):
        return Shown("", ours=True, ends=True)
    if _RESTARTS.match(message):
        return Shown("", ours=True, restarts=True)
    if level in ("warning", "error"):
        return None if _OVER.match(message) else Shown(message, ours=True)
    if _PLACE.fullmatch(message) and not (live and level == SILENT):
        numbers = metrics_text(values)
        return Shown(f"{message}: {numbers}" if numbers else message, ours=True)
    return None


def _parts(found: re.Match[str]) -> tuple[str, str, dict[str, Any]]:
    """The level, the message and the numbers of a line of dtjob's."""
    if found.re is _JSON:
        try:
            fields = json.loads(found[0])
        except ValueError:
            return "", "", {}
        values = {name: value for name, value in fields.items() if name not in _FIXED}
        return str(fields["level"]), str(fields.get("message", "")), values
    numbers = {}
    for name, value in _VALUE.findall(found["values"]):
        try:
            numbers[name] = float(value)
        except ValueError:
            continue
    return found["level"], str(json.loads(found["message"])), numbers
