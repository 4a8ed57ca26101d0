# SPDX-License-Identifier: Apache-2.0
"""What failures cost a run of training, by the log of its steps. Pure.

A step that was done again counts only the last time: the checkpoint before it was where training went on.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

DEATH_SECONDS = 1.0
"""What a process notes within so long after a failure is no sign that it survives it."""
LONGEST = 3.0
"""A step counts for at most so many times the median one: the rest of the time something was waited for."""


@dataclass(frozen=True)
class Note:
    """A process had done all steps up to this one, at this time of the machine's monotonic clock."""

    process: str
    step: int
    at: float


def read(text: str) -> list[Note]:
    """The notes of a log, without a line that is being written."""
    lines = [line.split() for line in text.split("\n")[:-1]]
    return [Note(process, int(step), float(at)) for process, step, at in lines]


def standing(notes: Sequence[Note]) -> list[Note]:
    """Those whose steps no later process did again."""
    kept: list[Note] = []
    first = float("inf")
    for note in reversed(notes):
        if note.step < first:
            kept.append(note)
            first = note.step
    return kept[::-1]


def kept_seconds(notes: Sequence[Note], began: float, ended: float) -> float:
    """Seconds of the time from `began` to `ended` that went into steps which stand.

    A step takes from the end of the process' step before, its save and its data included; a process' first one as long
    as others take, and one that waited not longer than LONGEST allows.
    """
    took = _intervals(notes)
    if not took:
        return 0.0
    usual = statistics.median(took.values())
    seconds = 0.0
    for note in standing(notes):
        begin = note.at - min(took.get(note, usual), LONGEST * usual)
        seconds += max(0.0, min(note.at, ended) - max(begin, began))
    return seconds


def kept_steps(notes: Sequence[Note], began: float, ended: float) -> int:
    """How many steps of that time stand."""
    stand = standing(notes)
    before = max((note.step for note in stand if note.at <= began), default=0)
    return max((note.step for note in stand if note.at <= ended), default=before) - before


def steps_done(notes: Sequence[Note], began: float, ended: float) -> int:
    """How many steps were done in that time, those that were done again counted each time. The first note of a process
    tells of as many as notes usually do."""
    pairs = [(before if before.process == note.process else None, note) for before, note in pairwise(notes)]
    counts = {note: note.step - before.step for before, note in pairs if before}
    usual = int(statistics.median(counts.values())) if counts else 1
    return sum(counts.get(note, usual) for note in notes if began < note.at <= ended)


def rate(notes: Sequence[Note], began: float, ended: float) -> float:
    """Steps a second of that time, in which nothing failed."""
    return steps_done(notes, began, ended) / (ended - began)


def to_new_step(notes: Sequence[Note], failed: float) -> float | None:
    """Seconds from a failure to the first step beyond all that were done before; None where there is none.

    What a process still notes as it dies, or before it learns of the failure, was done before.
    """
    at_work = {note.process for note in notes if note.at <= failed + DEATH_SECONDS}
    survives = {note.process for note in notes if note.at > failed + DEATH_SECONDS} & at_work
    late = {note for note in notes if failed < note.at <= failed + DEATH_SECONDS and note.process not in survives}
    last = max((note.step for note in notes if note.at <= failed or note in late), default=0)
    new = [note.at for note in notes if note.at > failed and note.step > last and note not in late]
    return min(new) - failed if new else None


def _intervals(notes: Sequence[Note]) -> dict[Note, float]:
    """Seconds of each note since the last one of the same process; nothing of a process' first."""
    return {note: note.at - before.at for before, note in pairwise(notes) if before.process == note.process}
