# SPDX-License-Identifier: Apache-2.0
"""What `fit` and `evaluate` must be given alike in every task, and the messages if something differs."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dtjob_trainer.data import marks
from dtjob_trainer.data.batches import Source
from dtjob_trainer.errors import CallbackError, DataError, FitError
from dtjob_trainer.strategies.agreement import UNKNOWN, Agreement, digest, number

if TYPE_CHECKING:  # their modules import TensorFlow, and nothing here needs that
    from dtjob_trainer.callbacks.called import Callbacks
    from dtjob_trainer.passes.epochs import Epochs
    from dtjob_trainer.strategies.collective import Group

MOST_EPOCHS = 10_000
"""Of how many epochs to compare whether there is a validation after each."""

_DATA = "give every task the same data; dtjob takes each task's share of it"


def agree(
    group: "Group",
    epochs: "Epochs",
    validation: Source | None,
    validates: Callable[[int], bool],
    order: Mapping[str, float],
    callbacks: "Callbacks",
) -> None:
    """Compare what all tasks were given, and set in `callbacks` what callbacks of any task need.

    - validates: whether there is a validation after the epoch of this number (from 0).
    - order: what `order_of` returns.

    Collective. Raises FitError or DataError, in all tasks alike, if a task was given something else.
    """
    if group.tasks == 1:
        return
    facts = Agreement(group)
    for name, count in (("epochs", epochs.epochs), ("initial_epoch", epochs.ended), ("steps_per_epoch", epochs.steps)):
        line = name + ": task {task} has {mine}, {chief} {his}; give every task the same number"
        facts.add(name, count, line, error=FitError)
    facts.add(
        "validation",
        validation is not None,
        "validation_data: {chief} has {his}, and task {task} has {mine}; give it to every task",
        error=FitError,
        words=lambda given: "it" if given else "none",
    )
    validated = digest([validates(epoch) for epoch in range(min(epochs.epochs, MOST_EPOCHS))])
    for name, value in {**order, "validation_freq": validated}.items():
        line = name + ": task {task} has another one than {chief}; give every task the same"
        facts.add(name, value, line, error=FitError)
    _add_data(facts, "x", epochs.source)
    _add_data(facts, "validation_data", validation)
    facts.add("per batch", callbacks.per_batch).add("per test batch", callbacks.per_test_batch)
    found = facts.add("callbacks", bool(callbacks.classes)).exchange()
    callbacks.per_batch, callbacks.per_test_batch, callbacks.may_part = (
        bool(found[name].any()) for name in ("per batch", "per test batch", "callbacks")
    )


def agree_on_evaluation(group: "Group", source: Source, callbacks: "Callbacks") -> None:
    """Compare the `source` that all tasks gave to `evaluate`, and set in `callbacks` what callbacks of any task need.

    Collective. Raises DataError, in all tasks alike, if a task was given something else.
    """
    if group.tasks == 1:
        return
    facts = Agreement(group)
    _add_data(facts, "x", source)
    found = facts.add("per test batch", callbacks.per_test_batch).exchange()
    callbacks.per_test_batch = bool(found["per test batch"].any())


def see_rates_agree(group: "Group", rates: Sequence[float]) -> None:
    """Compare the learning rates of all tasks, which a callback of one task may have changed.

    Collective. Raises CallbackError, in all tasks alike, if a task has another rate.
    """
    line = (
        "callbacks: the learning rate is {mine} in task {task}, and {his} in {chief}; give callbacks that change it to "
        "every task"
    )
    if rates:
        facts = Agreement(group)
        facts.add("rates", rates, line, near=True, error=CallbackError, words=lambda rate: f"{rate:.6g}").exchange()


def order_of(seed: int, shuffle: bool | str, class_weight: Mapping[int, float] | None) -> dict[str, float]:
    """What decides the order of data and its weights, as numbers by the name of the argument."""
    weights = sorted((int(label), f"{float(weight):.6g}") for label, weight in (class_weight or {}).items())
    given = {"seed": seed, "shuffle": shuffle, "class_weight": weights}
    return {name: digest(value) for name, value in given.items()}


def _add_data(facts: Agreement, argument: str, source: Source | None) -> None:
    """Add how many examples arrays have, what their first and last are, and how all data is cut.

    The number of examples of a data function is not compared, because they may be those of one task alone.
    """
    line = argument + ": task {task} has {mine} %s, {chief} {his}; "
    examples = steps = batch = None
    three: Sequence[marks.Marks] = (marks.NONE,) * 3
    if source is not None:
        batch, steps, three = source.batch, source.steps, source.marks or three
        examples = source.sizes.n if source.sizes is not None and source.marks else None
    facts.add(f"{argument} examples", examples, line % "examples" + _DATA, error=DataError, words=_many)
    parts = ("x", "y", "sample_weight") if argument == "x" else (argument,) * 3
    for at, (part, both) in enumerate(zip(parts, three, strict=True)):
        other = part + ": task {task} has another first or last example than {chief}; " + _DATA
        for near, mark in zip((False, True), both, strict=True):
            facts.add(f"{argument} {at} {near}", mark, other, near=near, error=DataError)
    size = line % "examples in a batch" + "give every task the same data and the same batch_size"
    facts.add(f"{argument} batch", batch, size, error=DataError, words=_many)
    facts.add(f"{argument} steps", steps, line % "batches" + _DATA, error=DataError, words=_many)


def _many(value: float) -> str:
    return "an unknown number of" if value == UNKNOWN else number(value)
