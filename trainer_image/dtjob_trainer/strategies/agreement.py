# SPDX-License-Identifier: Apache-2.0
"""What all tasks of a group must have alike, by name, compared in one exchange."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

UNKNOWN = -1.0
"""The number of a value that a task does not have (None)."""
NEARLY = 1e-4
"""How far apart, relative to their size, floats of two processors may be."""

Value = float | Sequence[float] | None
Table = npt.NDArray[np.float64]
Error = Callable[[str], object]
"""A type of exception, which is raised with the message in all tasks; or a function that only gets the message."""


@dataclass(frozen=True)
class _Fact:
    name: str
    values: tuple[float, ...]
    line: str
    near: bool
    error: Error | None
    words: Callable[[float], str]

    def difference(self, table: Table, tasks: Sequence[str]) -> str | None:
        """The message for the first row of `table` that differs from row 0. None if all rows are the same."""
        same = np.isclose(table, table[0], rtol=NEARLY if self.near else 0.0, atol=0, equal_nan=True)
        for task, mine, alike in zip(tasks, table, same, strict=True):
            if not alike.all():
                here, there = (self.words(row[~alike][0]) for row in (mine, table[0]))
                return self.line.format(task=task, chief=tasks[0], mine=here, his=there)
        return None


def number(value: float) -> str:
    """A whole number in words; "none" for UNKNOWN."""
    return "none" if value == UNKNOWN else str(int(value))


class Agreement:
    """Named values of every task. `add` them in all tasks in the same order, and then `exchange` them once."""

    def __init__(self, group: "Group") -> None:
        self._group = group
        self._facts: list[_Fact] = []

    def add(
        self,
        name: str,
        value: Value,
        line: str = "",
        *,
        near: bool = False,
        error: Error | None = None,
        words: Callable[[float], str] = number,
    ) -> "Agreement":
        """Add this task's `value`: a number, as many numbers as in all tasks, or None.

        - line: the message if a task differs from the chief, with the fields {task}, {chief}, {mine} and {his}.
        - near: whether floats may differ by NEARLY.
        - error: what to raise with the message, or to call with it. None: values may differ.
        - words: how {mine} and {his} show a number.
        """
        numbers = (value,) if value is None or isinstance(value, (int, float)) else value
        values = tuple(UNKNOWN if each is None else float(each) for each in numbers)
        self._facts.append(_Fact(name, values, line, near, error, words))
        return self

    def exchange(self) -> dict[str, Table]:
        """For each name the values of all tasks: [tasks, numbers]. Collective.

        The first difference with an exception as `error` raises it in all tasks.
        """
        table = self._group.of_each(np.array([each for fact in self._facts for each in fact.values], np.float64))
        ends = np.cumsum([len(fact.values) for fact in self._facts])[:-1]
        columns = np.split(table, ends, axis=1)
        for fact, column in zip(self._facts, columns, strict=True):
            if fact.error is None or (said := fact.difference(column, self._group.members)) is None:
                continue
            if isinstance(fact.error, type):
                self._group.leave_together()
                raise fact.error(said)
            fact.error(said)
        return {fact.name: column for fact, column in zip(self._facts, columns, strict=True)}


def digest(value: object) -> float:
    """A number for `value`, by its text."""
    return float(zlib.crc32(str(value).encode()))
