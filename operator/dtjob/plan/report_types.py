"""What a supervisor's report may bring into the status: values of the types that docs/contract.md says, and no others.

Whatever listens on a tenant's status port may answer anything, and an API server refuses a whole status for one value
that its schema does not take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

LARGEST = 2**53
"""Whole numbers beyond this are not the same to every reader of JSON."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
"""RFC 3339, as an API server takes it for a date-time."""


def of_the_contract(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report without known fields of another type, and its blocks without fields that are not known."""
    unknown = {name: value for name, value in report.items() if name not in _REPORT}
    return {**unknown, **_typed(report, _REPORT)}


Known = Mapping[str, "Callable[[Any], bool] | Known"]


def _typed(fields: Mapping[str, Any], known: Known) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, wanted in known.items():
        value = fields.get(name)
        if isinstance(wanted, Mapping):
            if isinstance(value, Mapping):
                kept[name] = _typed(value, wanted)
        elif wanted(value):
            kept[name] = value
    return kept


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST < value < LARGEST


def _number(value: Any) -> bool:
    return _whole(value) or isinstance(value, float)


def _mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _time(value: Any) -> bool:
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


_REPORT: Known = {
    **dict.fromkeys(("step", "totalSteps", "epoch", "restoredStep", "attempt", "incarnation"), _whole),
    **dict.fromkeys(("loss", "stepsPerSecond", "etaSeconds"), _number),
    **dict.fromkeys(("resume", "model"), _text),
    "metrics": _mapping,
    "checkpoint": {"step": _whole, "time": _time},
    "evaluation": {"step": _whole, "metrics": _mapping, "best": {"step": _whole, "value": _number}},
}
