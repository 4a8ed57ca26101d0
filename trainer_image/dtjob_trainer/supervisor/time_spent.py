"""What the time of a task's training went into since its supervisor began: steps that stand, steps that a restart took
back, and saves.

Each training process tells how long it has trained (docs/contract.md); only here is it known what the one before it in
this container had done. Steps that are taken back take with them their share of the time of the process that did them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

KEYS = ("trainedSeconds", "savedSeconds")
"""Keys of a training process that are taken in here and not shown as they are."""


@dataclass(frozen=True)
class _Steps:
    """Steps, and the seconds that they took together."""

    number: int = 0
    seconds: float = 0.0

    def share(self, number: int) -> _Steps:
        """So many of them, or all, with their part of the time; those of a row without steps are in vain all alike."""
        if number >= self.number:
            return self
        return _Steps(number, self.seconds * number / self.number)

    def __add__(self, other: _Steps) -> _Steps:
        return _Steps(self.number + other.number, self.seconds + other.seconds)

    def __sub__(self, other: _Steps) -> _Steps:
        return _Steps(self.number - other.number, self.seconds - other.seconds)


@dataclass(frozen=True)
class _Loop:
    """The loop that trains now, or trained last."""

    restored: int
    step: int
    trained: float = 0.0
    saved: float = 0.0

    @property
    def steps(self) -> _Steps:
        return _Steps(max(0, self.step - self.restored), max(0.0, self.trained - self.saved))


class TimeSpent:
    """Of one task, over all training processes of its supervisor."""

    def __init__(self) -> None:
        self._before, self._redone, self._saving = _Steps(), _Steps(), 0.0
        """Of the loops before this one: what stands; what does not; and saves."""
        self._loop: _Loop | None = None
        self._from = 0
        self._new_process = True

    def process_started(self) -> None:
        """A new training process begins. What the last one did stands until this one has restored something older."""
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
        """The block `spent` of /status, empty before training began: seconds, numbers of steps, and the step that the
        first training process went on from."""
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
        """What is taken back where a new process goes on from `restored`; all, where it found nothing."""
        if restored == 0:
            return self._before + last.steps
        back = max(0, last.step - restored)
        of_last = last.steps.share(back) if last.steps.number else last.steps
        return of_last + self._before.share(back - of_last.number)


def _is_seconds(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
