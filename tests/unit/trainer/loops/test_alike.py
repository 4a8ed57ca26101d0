# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.loops.alike: which differences between what tasks were given are told, and in which words."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dtjob_trainer.data.sharding import Sizes
from dtjob_trainer.errors import CallbackError, DataError, FitError
from dtjob_trainer.loops import alike
from dtjob_trainer.loops.fit_arguments import LeftAside, schedule
from tests.unit.trainer.tasks import Tasks

TASKS = ("chief-0", "worker-0", "worker-1")
SAME = "give every task the same data; dtjob takes each task's share of it"
MARKS = ((5.0, 10.0), (6.0, 0.0), (0.0, 0.0))


def arrays(n: int = 256, marks: Any = MARKS, batch: int = 32) -> Any:
    return SimpleNamespace(sizes=Sizes(n, batch, False), marks=marks, batch=batch, steps=-(-n // batch))


def other(sizes: Sizes | None = None, batch: int | None = None, steps: int | None = None) -> Any:
    return SimpleNamespace(sizes=sizes, marks=(), batch=batch, steps=steps)


def agree(
    group: Any,
    source: Any = None,
    epochs: int = 2,
    first: int = 0,
    steps: int | None = None,
    validation: Any = None,
    validates: Any = lambda epoch: True,
    order: Any = (1, True, None),
    callbacks: Any = None,
) -> None:
    course: Any = SimpleNamespace(source=source or arrays(), epochs=epochs, ended=first, steps=steps)
    callbacks = callbacks or SimpleNamespace(per_batch=False, per_test_batch=False, classes=[])
    alike.agree(group, course, validation, validates, alike.order_of(*order), callbacks)


def found(*given: dict[str, Any]) -> Any:
    """The error that all tasks raise alike, if these are the arguments of each. None: there is none."""
    errors = Tasks(TASKS[: len(given)]).errors(lambda group: agree(group, **given[group.index]))
    assert len({(type(error), str(error)) for error in errors}) == 1
    return errors[0]


@pytest.mark.parametrize("same", [{}, {"source": other()}, {"validation": arrays(n=7)}, {"source": other(steps=4)}])
def test_tasks_that_were_given_the_same_have_no_difference(same: dict[str, Any]) -> None:
    assert found(same) is None
    assert found(same, same, same) is None


OTHER_X = arrays(marks=((5.0, 10.01), *MARKS[1:]))
OTHER_Y = arrays(marks=(MARKS[0], (7.0, 0.0), MARKS[2]))
ORDERS = {
    "seed": (2, True, None),
    "shuffle": (1, "batch", None),
    "class_weight": (1, True, {0: 1.0, 1: 2.5}),
}


@pytest.mark.parametrize(
    ("chief", "worker", "line"),
    [
        ({}, {"source": arrays(160)}, f"x: task worker-0 has 160 examples, chief-0 256; {SAME}"),
        ({}, {"source": arrays(250)}, "x: task worker-0 has 250 examples, chief-0 256; "),
        ({}, {"source": other(batch=32, steps=8)}, "x: task worker-0 has an unknown number of examples, chief-0 256; "),
        ({}, {"source": OTHER_X}, f"x: task worker-0 has another first or last example than chief-0; {SAME}"),
        ({}, {"source": OTHER_Y}, "y: task worker-0 has another first or last example than chief-0; "),
        ({"source": other(steps=8)}, {"source": other(steps=5)}, "x: task worker-0 has 5 batches, chief-0 8; "),
        ({}, {"source": arrays(batch=64)}, "x: task worker-0 has 64 examples in a batch, chief-0 32; "),
        ({}, {"epochs": 3}, "epochs: task worker-0 has 3, chief-0 2; give every task the same number"),
        ({"steps": 4}, {}, "steps_per_epoch: task worker-0 has none, chief-0 4; "),
        ({"validation": arrays()}, {}, "validation_data: chief-0 has it, and task worker-0 has none; "),
        (
            {"validation": arrays()},
            {"validation": arrays(255)},
            f"validation_data: task worker-0 has 255 examples, chief-0 256; {SAME}",
        ),
        *(
            ({}, {"order": order}, f"{name}: task worker-0 has another one than chief-0; give every task the same")
            for name, order in ORDERS.items()
        ),
        (
            {},
            {"validates": lambda epoch: epoch == 1},
            "validation_freq: task worker-0 has another one than chief-0; give every task the same",
        ),
    ],
)
def test_each_difference_between_tasks_has_its_error_and_its_message(
    chief: dict[str, Any], worker: dict[str, Any], line: str
) -> None:
    error = found(chief, worker)
    assert str(error).startswith(line)
    assert isinstance(error, DataError if "example" in line or "batches" in line else FitError)


def test_the_task_that_differs_is_named() -> None:
    assert "task worker-1 has 160" in str(found({}, {}, {"source": arrays(160)}))


def test_floats_that_another_processor_has_rounded_are_the_same() -> None:
    assert found({}, {"source": arrays(marks=((5.0, 10.00001), *MARKS[1:]))}) is None


def test_a_data_function_has_as_many_examples_as_it_likes() -> None:
    assert found({"source": other(Sizes(60, 32, False))}, {"source": other(Sizes(50, 32, False))}) is None


def test_all_tasks_call_back_at_each_batch_if_one_task_does() -> None:
    each: Any = [
        SimpleNamespace(per_batch=False, per_test_batch=False, classes=["A"]),
        SimpleNamespace(per_batch=True, per_test_batch=False, classes=[]),
    ]
    Tasks(TASKS[:2]).run(lambda group: agree(group, callbacks=each[group.index]))
    for callbacks in each:
        assert (callbacks.per_batch, callbacks.per_test_batch, callbacks.may_part) == (True, False, True)


def test_weights_of_classes_are_the_same_in_any_order_and_from_any_processor() -> None:
    one = alike.order_of(1, True, {0: 1, 1: 2.5})
    assert one == alike.order_of(1, True, {1: 2.5 + 1e-12, 0: np.float32(1)})
    assert alike.order_of(1, True, {}) == alike.order_of(1, True, None)


def test_epochs_of_validation_are_compared_in_all_ways_of_writing_them() -> None:
    """A container of the program's own may print its address, and NumPy's numbers have another name."""
    ways: Any = [{2}, [2], np.int64(2), 2]
    first, *others = ({"validates": schedule(way, LeftAside(validated=True))} for way in ways)
    assert all(found(first, other) is None for other in others)


def rates_differ(*rates: list[float]) -> Any:
    return Tasks(TASKS[: len(rates)]).errors(lambda group: alike.see_rates_agree(group, rates[group.index]))[0]


@pytest.mark.parametrize("rates", [[0.1], [0.1, np.nan], [np.nan, 0.0]])
def test_learning_rates_that_are_nearly_the_same_are(rates: list[float]) -> None:
    assert rates_differ(rates, [rate * (1 + 1e-7) for rate in rates]) is None


def test_the_error_of_a_different_learning_rate_names_its_task() -> None:
    error = rates_differ([0.1, 0.5], [0.1, 0.5], [0.1, 0.05])
    assert isinstance(error, CallbackError)
    assert str(error) == (
        "callbacks: the learning rate is 0.05 in task worker-1, and 0.5 in chief-0; give callbacks that change it to "
        "every task"
    )
