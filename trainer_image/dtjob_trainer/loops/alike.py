# SPDX-License-Identifier: Apache-2.0
"""What must be alike in every task of `fit`, and what to say where it is not."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dtjob_trainer.data import marks
from dtjob_trainer.data.batches import Source
from dtjob_trainer.errors import ArgumentError, CallbackError, DataError, FitError

if TYPE_CHECKING:  # their modules import TensorFlow, and nothing here needs that
    from dtjob_trainer.callbacks.called import Callbacks
    from dtjob_trainer.passes.epochs import Epochs
    from dtjob_trainer.strategies.collective import Group

UNKNOWN = -1.0
MOST_EPOCHS = 10_000
"""Of how many epochs to look whether there is a validation after each."""
NEARLY = 1e-4
"""How far floats may be apart that another processor has computed."""

_DATA = "give every task the same data; dtjob takes each task's share of it"
_NUMBER = "give every task the same number"


@dataclass(frozen=True)
class Fact:
    """A number that is the same in every task, or the line that says what is wrong."""

    line: str
    """With the names {task} and {chief}, and what they have: {mine} and {his}."""
    error: type[ArgumentError] = DataError
    near: bool = False
    """Whether it is only nearly the same."""


def _of_data(argument: str) -> list[Fact]:
    """What `_data` tells of a source."""
    line = argument + ": task {task} has {mine} %s, {chief} {his}; "
    other = "{part}: task {{task}} has another first or last example than {{chief}}; " + _DATA
    parts = ("x", "y", "sample_weight") if argument == "x" else (argument,) * 3
    told = [Fact(other.format(part=part), near=near) for part in parts for near in (False, True)]
    batches = line % "batches" + _DATA
    size = line % "examples in a batch" + "give every task the same data and the same batch_size"
    return [Fact(line % "examples" + _DATA), *told, Fact(size), Fact(batches)]


FACTS = [
    *(
        Fact(name + ": task {task} has {mine}, {chief} {his}; " + _NUMBER, FitError)
        for name in ("epochs", "initial_epoch", "steps_per_epoch")
    ),
    Fact("validation_data: {chief} has {his}, and task {task} has {mine}; give it to every task", FitError),
    Fact("validation_freq: task {task} has other epochs than {chief}; give every task the same", FitError),
    *(
        Fact(name + ": task {task} has another one than {chief}; give every task the same", FitError)
        for name in ("seed", "shuffle", "class_weight")
    ),
    *_of_data("x"),
    *_of_data("validation_data"),
]
"""In the order in which they are told, and of `facts`."""

_VALIDATES = 3
"""The fact that is told in words."""


def agree(
    group: "Group",
    tasks: Sequence[str],
    epochs: "Epochs",
    validation: Source | None,
    validates: Callable[[int], bool],
    order: Sequence[float],
    callbacks: "Callbacks",
) -> None:
    """See that all tasks (of these ids) train on the same, and call back at each batch where one of them does; learn
    whether any has callbacks.

    `order`: what `order_of` gives. Collective. Raises FitError or DataError, in all tasks alike, where one was given
    something else.
    """
    flags = [callbacks.per_batch, callbacks.per_test_batch, bool(callbacks.classes)]
    table = group.of_each(np.array([*facts(epochs, validation, validates, order), *flags], np.float64))
    if (error := difference(table[:, :-3], tasks)) is not None:
        group.leave_together()
        raise error
    callbacks.per_batch, callbacks.per_test_batch = bool(table[:, -3].any()), bool(table[:, -2].any())
    callbacks.may_part = bool(table[:, -1].any())


def agree_on_evaluation(group: "Group", tasks: Sequence[str], source: Source, callbacks: "Callbacks") -> None:
    """See that all tasks (of these ids) evaluate on the same, and call back at each batch where one of them does.

    Collective. Raises DataError, in all tasks alike, where one was given something else.
    """
    table = group.of_each(np.array([*_data(source), callbacks.per_test_batch], np.float64))
    if (error := difference(table[:, :-1], tasks, _of_data("x"))) is not None:
        group.leave_together()
        raise error
    callbacks.per_test_batch = bool(table[:, -1].any())


def see_rates_agree(group: "Group", tasks: Sequence[str], rates: Sequence[float]) -> None:
    """See that the learning rates of all tasks (of these ids) are the same: a callback of one task alone may have
    changed one there, and the weights would part.

    Collective. Raises CallbackError, in all tasks alike, where one has another rate.
    """
    if rates and (error := other_rates(group.of_each(np.array(rates, np.float64)), tasks)) is not None:
        group.leave_together()
        raise error


def other_rates(table: npt.NDArray[np.float64], tasks: Sequence[str]) -> CallbackError | None:
    """The error for the first row of `table`, one for each of `tasks`, that has another rate than the first one's."""
    same = np.isclose(table, table[0], rtol=NEARLY, atol=0, equal_nan=True)
    for task, rates, alike in zip(tasks, table, same, strict=True):
        if not alike.all():
            rate, his = rates[~alike][0], table[0][~alike][0]
            return CallbackError(
                f"callbacks: the learning rate is {rate:.6g} in task {task}, and {his:.6g} in {tasks[0]}; give "
                "callbacks that change it to every task"
            )
    return None


def order_of(seed: int, shuffle: bool | str, class_weight: Mapping[int, float] | None) -> list[float]:
    """What decides of the order of data and of its weights, as `FACTS` has it."""
    weights = sorted((int(label), f"{float(weight):.6g}") for label, weight in (class_weight or {}).items())
    return [zlib.crc32(str(each).encode()) for each in (seed, shuffle, weights)]


def facts(
    epochs: "Epochs", validation: Source | None, validates: Callable[[int], bool], order: Sequence[float]
) -> list[float]:
    """What this task was given, as `FACTS` has it."""
    after = bytes(validates(epoch) for epoch in range(min(epochs.epochs, MOST_EPOCHS)))
    return [
        epochs.epochs,
        epochs.ended,
        _known(epochs.steps),
        validation is not None,
        UNKNOWN if validation is None else zlib.crc32(after),
        *order,
        *_data(epochs.source),
        *([UNKNOWN] * len(_data(epochs.source)) if validation is None else _data(validation)),
    ]


def difference(
    table: npt.NDArray[np.float64], tasks: Sequence[str], facts: Sequence[Fact] = FACTS
) -> ArgumentError | None:
    """The error for the first of `facts` in which a row of `table`, one for each of `tasks`, is not the first one's."""
    for fact, column in zip(facts, table.T, strict=True):
        within = NEARLY if fact.near else 0.0
        for task, value in zip(tasks, column, strict=True):
            if not np.isclose(value, column[0], rtol=within, atol=0):
                mine, his = _words(fact, value), _words(fact, column[0])
                return fact.error(fact.line.format(task=task, chief=tasks[0], mine=mine, his=his))
    return None


def _data(source: Source) -> list[float]:
    """How many examples arrays have and what they are, and how all data is cut.

    A data function's examples may be those of its task alone: of how many it is is its own affair.
    """
    examples = UNKNOWN if source.sizes is None or not source.marks else source.sizes.n
    three = source.marks or (marks.NONE,) * 3
    return [examples, *(mark for part in three for mark in part), _known(source.batch), _known(source.steps)]


def _known(number: int | None) -> float:
    return UNKNOWN if number is None else number


def _words(fact: Fact, value: Any) -> str:
    if fact is FACTS[_VALIDATES]:
        return "it" if value else "none"
    if value == UNKNOWN:
        return "none" if fact.error is FitError else "an unknown number of"
    return str(int(value))
