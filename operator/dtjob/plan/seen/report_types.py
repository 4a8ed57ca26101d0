# SPDX-License-Identifier: Apache-2.0
"""Types of a report: values of the types in docs/contract.md enter the status, and no others.

Whatever listens on a tenant's status port may answer anything, and an API server refuses a whole status for one value
that its schema does not take.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

LARGEST = 2**53
"""Whole numbers beyond this are not the same to every reader of JSON."""
MOST_SECONDS = 100 * 365.25 * 86400
"""An estimate beyond a century is none."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339, as an API server takes it for a date-time."""

Known = Mapping[str, "Callable[[Any], Any] | Known"]
"""By the field's name what makes of its value one of the right type (None: it has none), or the same for a block."""


def of_the_contract(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report without known fields of another type, and its blocks without fields that are not known.

    A block that has no step says nothing, and is left out.
    """
    unknown = {name: value for name, value in report.items() if name not in _REPORT}
    known = _typed(report, _REPORT)
    return {**unknown, **{name: value for name, value in known.items() if name not in _OF_A_STEP or "step" in value}}


def is_number(value: Any) -> bool:
    """Whether it is a number that JSON and a status can hold: neither NaN, nor infinite, nor beyond 64 bits."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**63


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


def _whole(value: Any) -> int | None:
    if not is_number(value) or (isinstance(value, float) and not value.is_integer()):
        return None
    return int(value) if -LARGEST < value < LARGEST else None


def _number(value: Any) -> float | None:
    return value if is_number(value) else None


def _seconds(value: Any) -> float | None:
    return value if is_number(value) and abs(value) < MOST_SECONDS else None


def _numbers(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, Mapping):
        return None
    return {name: one for name, one in value.items() if is_number(one)}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _not_finite(value: Any) -> str | None:
    return value if value in ("NaN", "Infinity") else None


def _time(value: Any) -> str | None:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return None
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return None
    return value


_REPORT: Known = {
    **dict.fromkeys(("step", "totalSteps", "epoch", "stage", "restoredStep", "attempt", "incarnation"), _whole),
    **dict.fromkeys(("loss", "stepsPerSecond"), _number),
    "etaSeconds": _seconds,
    **dict.fromkeys(("resume", "model"), _text),
    "weights": _not_finite,
    "metrics": _numbers,
    "checkpoint": {"step": _whole, "time": _time},
    "spent": {
        **dict.fromkeys(("from", "keptSteps", "redoneSteps"), _whole),
        **dict.fromkeys(("kept", "redone", "saving"), _seconds),
    },
    "crashes": {**dict.fromkeys(("count", "step"), _whole), **dict.fromkeys(("task", "signal"), _text)},
    "evaluation": {"step": _whole, "metrics": _numbers, "best": {"step": _whole, "value": _number}},
}
_OF_A_STEP = ("checkpoint", "evaluation")
