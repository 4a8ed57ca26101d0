# SPDX-License-Identifier: Apache-2.0
"""The curves of one job: values by step."""

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from typing import Any

from dtjob.api.status.block import LARGEST_WHOLE

MOST_CURVES = 64
MOST_POINTS = 500
"""In one curve. A longer one loses every second point."""
LONGEST_NAME = 256


class Series:
    """Values of metrics by step. Values of a step that is done again replace the earlier ones."""

    def __init__(self) -> None:
        self._curves: dict[str, tuple[array[int], array[float]]] = {}

    def add(self, step: Any, values: Mapping[Any, Any]) -> None:
        """Take what was reported at a step. What is no number is left out: whatever runs in a pod may report."""
        if not isinstance(step, int) or isinstance(step, bool) or not 0 <= step < LARGEST_WHOLE:
            return
        for name, value in values.items():
            number = _number(value)
            if number is not None and (name in self._curves or len(self._curves) < MOST_CURVES):
                self._put(str(name)[:LONGEST_NAME], step, number)

    def forget_from(self, step: int) -> None:
        """Forget this step and all later ones: training begins again there."""
        for steps, values in self._curves.values():
            at = bisect_left(steps, step)
            del steps[at:], values[at:]

    def curves(self) -> Iterator[dict[str, Any]]:
        """Each curve that has a point: its name, its steps in order, and the value at each."""
        for name, (steps, values) in self._curves.items():
            if steps:
                yield {"name": name, "steps": steps.tolist(), "values": values.tolist()}

    def _put(self, name: str, step: int, value: float) -> None:
        steps, values = self._curves.setdefault(name, (array("q"), array("d")))
        at = bisect_left(steps, step)
        if at < len(steps) and steps[at] == step:
            values[at] = value
            return
        steps.insert(at, step)
        values.insert(at, value)
        if len(steps) > MOST_POINTS:
            del steps[1:-1:2], values[1:-1:2]


def _number(value: Any) -> float | None:
    """The number, also one that a status has as text. None if it is none that can be drawn."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
