# SPDX-License-Identifier: Apache-2.0
"""Whether all tasks read the same batches, of which each trains its rows. The first batch of each pass shows it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dtjob_trainer.data import marks
from dtjob_trainer.data.batches import Source
from dtjob_trainer.errors import DataError
from dtjob_trainer.strategies.agreement import Agreement, Error

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

PARTS = ("inputs", "targets", "sample weights")
_MEND = (
    "make the same Dataset in every task: sort the names of files, give shuffle() a seed, and use random operations in "
    "all tasks alike, not only at the chief"
)
_REFUSED = "some examples would be trained on twice and others never; "
_TOLD = "if these are not random values for the same examples, "


def are_compared(source: Source, group: "Group") -> bool:
    """Whether `see` is to be called for each pass over `source`."""
    return group.tasks > 1 and source.compared is not None


def see(source: Source, group: "Group", mine: Sequence[float], tell: Callable[[str], object]) -> None:
    """Compare this task's marks of the first batch of a pass, as `Source.marks_of` returns them. Collective.

    - tell: called with a difference that may be intended.

    Raises DataError, in all tasks alike, if some examples would be trained on twice and others never.
    """
    where, told = source.argument + ": in the first batch of a pass, task {task} reads", list[str]()
    facts = Agreement(group)
    table = np.array(mine or marks.NO_BATCH).reshape(len(PARTS), -1)
    for part, (rows, *_) in zip(PARTS, table, strict=True):
        line = where + " {mine} examples and {chief} {his}; " + _MEND
        facts.add(f"{part} rows", rows, line, error=DataError, words=_rows)
    without_targets = table[1][0] < 0
    for part, (_, exact, *near) in zip(PARTS, table, strict=True):
        for name, numbers in (("exact", [exact]), ("near", near)):
            error = _error(source, part, name, without_targets, told.append)
            why = _REFUSED if error is DataError else _TOLD
            line = f"{where} other {part} than {{chief}}: {why}{_MEND}"
            facts.add(f"{part} {name}", numbers, line, near=name == "near", error=error)
    facts.exchange()
    for message in told[:1]:
        tell(message)


def _error(source: Source, part: str, name: str, without_targets: bool, tell: Callable[[str], object]) -> Error | None:
    """What to do if the marks of a part of a batch differ: "exact" are whole numbers and text, "near" are floats.

    | `source.compared` | inputs | targets and weights |
    |---|---|---|
    | "all" | refused | refused |
    | "targets": Python code may draw random inputs in each task | told | refused |
    | "labels": random operations may make inputs and mix targets | told if there are no targets | floats are told |
    """
    match source.compared:
        case "all":
            return DataError
        case "targets":
            return tell if part == "inputs" else DataError
        case _ if part == "inputs":
            return tell if without_targets else None
        case _:
            return tell if name == "near" else DataError


def _rows(number: float) -> str:
    return "no" if number < 0 else f"{number:.0f}"
