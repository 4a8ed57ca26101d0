# SPDX-License-Identifier: Apache-2.0
"""Report: what a supervisor answers at `/status`, as far as the operator reads it (contract.md).

Whatever listens on a tenant's status port may answer anything. An API server refuses a whole status for one value that
its schema does not take, or that makes the status too large. So values of the right types and sizes are taken, and no
others.
"""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from dtjob.api.status.block import LARGEST_WHOLE

MOST_ENTRIES = 64
"""Of a block whose names are not in the contract, such as `metrics`."""
LONGEST_TEXT = 256
"""Characters of a text, and of a name."""
MOST_SECONDS = 100 * 365.25 * 86400
"""An estimate beyond a century is none."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339, as an API server takes it for a date-time."""

Known = Mapping[str, "Callable[[Any], Any] | Known"]
"""By the field's name what makes of its value one of the right type (None: it has none), or the same for a block."""


def read_report(report: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the report that the operator reads, without values of another type.

    A checkpoint or an evaluation that has no step says nothing, and is left out.
    """
    known = _typed(report, _REPORT)
    return {name: value for name, value in known.items() if name not in _OF_A_STEP or "step" in value}


def _typed(fields: Mapping[str, Any], known: Known) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, wanted in known.items():
        value = fields.get(name)
        if isinstance(wanted, Mapping):
            taken = _typed(value, wanted) if isinstance(value, Mapping) else None
        else:
            taken = wanted(value)
        if taken is not None:
            kept[name] = taken
    return kept


def _number(value: Any) -> float | None:
    """A number that JSON and a status can hold: neither NaN, nor infinite, nor beyond 64 bits."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63 else None


def _whole(value: Any, below: int = LARGEST_WHOLE) -> int | None:
    """A step, or another count: from 0 on."""
    number = _number(value)
    return int(number) if number is not None and number == int(number) and 0 <= number < below else None


_int32 = partial(_whole, below=2**31)
"""A whole number for a field of format int32, which an API server checks."""


def _seconds(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number < MOST_SECONDS else None


def _share(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    """At most LONGEST_TEXT characters, without halves of characters, which UTF-8 cannot write."""
    if not isinstance(value, str):
        return None
    text = value.encode(errors="replace").decode()
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _not_finite(value: Any) -> str | None:
    return value if value in ("NaN", "Infinity") else None


def _time(value: Any) -> str | None:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return None
    try:
        datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):  # in UTC its year may be 0 or 10000
        return None
    return value


def _each(of: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any] | None]:
    """A block with any names, whose values are all of this type."""

    def read(value: Any) -> dict[str, Any] | None:
        if not isinstance(value, Mapping):
            return None
        taken = ((name, of(one)) for name, one in value.items() if len(name) <= LONGEST_TEXT)
        kept = [(_text(name) or "", one) for name, one in taken if one is not None]
        return dict(kept[:MOST_ENTRIES])

    return read


_REPORT: Known = {
    **dict.fromkeys(("step", "totalSteps", "epoch", "restoredStep"), _whole),
    **dict.fromkeys(("stage", "attempt", "incarnation"), _int32),
    **dict.fromkeys(("task", "jobUid", "state", "message", "resume", "model"), _text),
    **dict.fromkeys(("loss", "stepsPerSecond", "examplesPerSecond"), _number),
    "etaSeconds": _seconds,
    "inputWait": _share,
    "stepped": _flag,
    "weights": _not_finite,
    "metrics": _each(_number),
    "silent": _each(_whole),
    "unreached": _each(_text),
    "lastRestart": {"time": _time},
    "checkpoint": {"step": _whole, "time": _time},
    "spent": {
        **dict.fromkeys(("from", "keptSteps", "redoneSteps"), _whole),
        **dict.fromkeys(("kept", "redone", "saving"), _seconds),
    },
    "crashes": {**dict.fromkeys(("count", "step"), _whole), **dict.fromkeys(("task", "signal"), _text)},
    "evaluation": {"step": _whole, "metrics": _each(_number), "best": {"step": _whole, "value": _number}},
}
_OF_A_STEP = ("checkpoint", "evaluation")
