# SPDX-License-Identifier: Apache-2.0
"""Where a task's training time went since its supervisor began: kept steps, steps that a restart took back, and saves.

Each training process reports how long it has trained (contract.md). Only the supervisor knows what the processes
before it in this container did. Steps that are taken back count with their share of the time of their process.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

KEYS = ("trainedSeconds", "savedSeconds")
"""Keys of a report that are used here and not shown in the status themselves."""


@dataclass(frozen=True)
class _Steps:
    """A number of steps, and the seconds that they took together."""

    number: int = 0
    seconds: float = 0.0

    def share(self, number: int) -> "_Steps":
        """So many of the steps, or all of them, with their part of the time. Without steps, all of the time."""
        if number >= self.number:
            return self
        return _Steps(number, self.seconds * number / self.number)

    def __add__(self, other: "_Steps") -> "_Steps":
        return _Steps(self.number + other.number, self.seconds + other.seconds)

    def __sub__(self, other: "_Steps") -> "_Steps":
        return _Steps(self.number - other.number, self.seconds - other.seconds)


@dataclass(frozen=True)
class _Loop:
    """The loop that trains now, or that trained last."""

    restored: int
    step: int
    trained: float = 0.0
    saved: float = 0.0

    @property
    def steps(self) -> _Steps:
        return _Steps(max(0, self.step - self.restored), max(0.0, self.trained - self.saved))


class TimeSpent:
    """The time of one task, over all training processes of its supervisor."""

    def __init__(self) -> None:
        self._before, self._redone, self._saving = _Steps(), _Steps(), 0.0
        """Of the loops before this one: kept steps, steps that were taken back, and seconds of saves."""
        self._loop: _Loop | None = None
        self._from = 0
        self._new_process = True

    def process_started(self) -> None:
        """A new training process begins. The steps of the last one are kept until this one restores an older step."""
        self._new_process = True

    def heard(self, report: Mapping[str, Any]) -> None:
        """The training process reports."""
        if isinstance(restored := report.get("restoredStep"), int):
            self._begin(restored)
        if self._loop is None or self._new_process:
            return
        step, trained, saved = (report.get(key) for key in ("step", *KEYS))
        if isinstance(step, int):
            self._loop = replace(self._loop, step=step)
        if _is_seconds(trained) and _is_seconds(saved):
            self._loop = replace(self._loop, trained=trained, saved=saved)

    def to_json(self) -> dict[str, Any]:
        """The block `spent` of /status. It is empty before training began.

        It has seconds, numbers of steps, and the step from which the first training process started.
        """
        if self._loop is None:
            return {}
        kept = self._before + self._loop.steps
        return {
            "from": self._from,
            "keptSteps": kept.number,
            "kept": round(kept.seconds, 2),
            "redoneSteps": self._redone.number,
            "redone": round(self._redone.seconds, 2),
            "saving": round(self._saving + self._loop.saved, 2),
        }

    def _begin(self, restored: int) -> None:
        last = self._loop
        if last is None:
            self._from = restored
        else:
            kept = self._before + last.steps
            lost = self._lost(last, restored) if self._new_process else _Steps()
            self._before, self._redone = kept - lost, self._redone + lost
            self._saving += last.saved
            self._from = min(self._from, restored) if self._new_process else self._from
        self._loop, self._new_process = _Loop(restored, restored), False

    def _lost(self, last: _Loop, restored: int) -> _Steps:
        """What is taken back if a new process starts from `restored`: everything if it found no checkpoint."""
        if restored == 0:
            return self._before + last.steps
        back = max(0, last.step - restored)
        of_last = last.steps.share(back) if last.steps.number else last.steps
        return of_last + self._before.share(back - of_last.number)


def _is_seconds(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
