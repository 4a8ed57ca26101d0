# SPDX-License-Identifier: Apache-2.0
"""The lines that dtjob itself prints in a training container, in logfmt or JSON (contract.md).

A line is one event. It has time, level, task, the step if there is one, a message, and then facts and numbers by name.
The program's own output is not changed.
"""

import contextlib
import json
import math
import os
import re
from collections.abc import Mapping
from typing import Literal, TextIO

from dtjob_trainer.contract.times import timestamp

Level = Literal["debug", "info", "warning", "error"]
Facts = Mapping[str, str | int | bool]

FORMAT, LEVEL = "DTJOB_LOG_FORMAT", "DTJOB_LOG_LEVEL"
"""Variables that choose the format, logfmt (the default) or json, and the least severe level that is written."""
LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")
LEAST: Level = "info"
"""Without the variable."""
FIXED = ("time", "level", "task", "step", "message")
"""Keys of every line, in this order. The task and the step may be missing."""


def line(
    message: str,
    *,
    time: str,
    level: Level = "info",
    task: str | None = None,
    step: int | None = None,
    facts: Facts | None = None,
    values: Mapping[str, float] | None = None,
) -> str:
    """One line, without the newline at its end.

    - time: RFC 3339.
    - facts: by name, written as JSON.
    - values: numbers by name, written with six significant digits.

    Characters of a name that logfmt does not allow become `_`. A name that is one of FIXED gets a `_` at its end.
    """
    fixed = {"time": time, "level": level, "task": task, "step": step, "message": message}
    shown = {name: value for name, value in fixed.items() if value is not None}
    told = {_key(name): fact for name, fact in (facts or {}).items()}
    numbers = {_key(name): f"{value:.6g}" for name, value in (values or {}).items()}
    if os.environ.get(FORMAT) == "json":
        as_json = {name: float(text) if math.isfinite(float(text)) else text for name, text in numbers.items()}
        return json.dumps({**shown, **told, **as_json}, ensure_ascii=False)
    quoted = {name: json.dumps(text, ensure_ascii=False) for name, text in {"message": message, **told}.items()}
    return " ".join(f"{name}={text}" for name, text in {**shown, **quoted, **numbers}.items())


def write(
    stream: TextIO,
    message: str,
    *,
    level: Level = "info",
    task: str | None = None,
    step: int | None = None,
    facts: Facts | None = None,
    values: Mapping[str, float] | None = None,
) -> None:
    """Write a line with the present time to `stream`, in one piece: supervisor and training process share a stream.

    If it cannot be written (a full disk, a pipe that nobody reads), it is lost. Training must not fail because of it.
    """
    least = os.environ.get(LEVEL)
    if LEVELS.index(level) < LEVELS.index(least if least in LEVELS else LEAST):
        return
    said = line(message, time=timestamp(), level=level, task=task, step=step, facts=facts, values=values)
    with contextlib.suppress(OSError, ValueError):
        stream.write(said + "\n")
        stream.flush()


def _key(name: str) -> str:
    key = re.sub(r'[\s="\x00-\x1f\x7f]', "_", name) or "_"
    return f"{key}_" if key in FIXED else key
