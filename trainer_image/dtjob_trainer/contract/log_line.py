"""The lines that dtjob itself prints in a training container, in logfmt (docs/contract.md).

A line is one event. It has time, level, task, the step if there is one, a message, and then facts and numbers by name.
The program's own output is not changed.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Literal, TextIO

from dtjob_trainer.contract.times import timestamp

Level = Literal["info", "warning", "error"]
Facts = Mapping[str, str | int | bool]

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
    pairs = [f"time={time}", f"level={level}"]
    if task is not None:
        pairs.append(f"task={task}")
    if step is not None:
        pairs.append(f"step={step}")
    pairs.append(f"message={json.dumps(message, ensure_ascii=False)}")
    pairs += [f"{_key(name)}={json.dumps(fact, ensure_ascii=False)}" for name, fact in (facts or {}).items()]
    pairs += [f"{_key(name)}={value:.6g}" for name, value in (values or {}).items()]
    return " ".join(pairs)


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
    said = line(message, time=timestamp(), level=level, task=task, step=step, facts=facts, values=values)
    with contextlib.suppress(OSError, ValueError):
        stream.write(said + "\n")
        stream.flush()


def _key(name: str) -> str:
    key = re.sub(r'[\s="\x00-\x1f\x7f]', "_", name) or "_"
    return f"{key}_" if key in FIXED else key
