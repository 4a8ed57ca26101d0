# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.callbacks.called: which callbacks hear of each batch."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dtjob_trainer.errors import CallbackError

keras = pytest.importorskip("keras")
callbacks = pytest.importorskip("dtjob_trainer.callbacks.called")
keeping = pytest.importorskip("dtjob_trainer.callbacks.keeping")


def at_epochs_end(base: Any) -> Any:
    """A user's subclass that does something at the end of an epoch alone."""
    return type(f"My{base.__name__}", (base,), {"on_epoch_end": lambda self, epoch, logs=None: None})


def at_batches_end(base: Any) -> Any:
    return type(f"My{base.__name__}", (base,), {"on_train_batch_end": lambda self, batch, logs=None: None})


@pytest.mark.parametrize(
    ("made", "wants"),
    [
        (lambda: keras.callbacks.EarlyStopping(), False),
        (lambda: keras.callbacks.TensorBoard("logs"), False),
        (lambda: keras.callbacks.TensorBoard("logs", update_freq=5), True),
        (lambda: at_epochs_end(keras.callbacks.TensorBoard)("logs"), False),
        (lambda: at_epochs_end(keras.callbacks.TensorBoard)("logs", update_freq="batch"), True),
        (lambda: at_batches_end(keras.callbacks.TensorBoard)("logs"), True),
        (lambda: at_epochs_end(keras.callbacks.ModelCheckpoint)("m.keras"), False),
        (lambda: at_epochs_end(keras.callbacks.ModelCheckpoint)("m.keras", save_freq=3), True),
        (lambda: at_epochs_end(keras.callbacks.Callback)(), False),
        (lambda: at_batches_end(keras.callbacks.Callback)(), True),
        (lambda: keras.callbacks.LambdaCallback(on_epoch_end=print), False),
    ],
)
def test_a_callback_without_batch_methods_of_its_own_is_not_called_for_batches(made: Any, wants: bool) -> None:
    """A subclass of one of Keras's own that adds nothing for batches is as that is."""
    assert callbacks._wants_batches(made(), keras.callbacks, callbacks.BATCH_METHODS) == wants


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda: keras.callbacks.ModelCheckpoint("x.keras", save_freq=5), 'use save_freq="epoch", or on_epoch_begin'),
        (lambda: keras.callbacks.TensorBoard(update_freq=5), 'use update_freq="epoch", profile_batch=0 and'),
        (lambda: keras.callbacks.LambdaCallback(on_train_batch_end=print), "use on_epoch_begin and on_epoch_end$"),
    ],
)
def test_a_callback_for_batches_says_what_to_write_where_steps_would_run_side_by_side(
    given: Any, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # TensorBoard makes its directory
    (why,) = made(given(), asynchronous=True).one_at_a_time
    assert re.search(words, why)
    assert not made(given()).one_at_a_time


class Counts(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps a number."""

    def __init__(self, count: int = 0) -> None:
        super().__init__()
        self.count = count

    def get_state(self) -> int:
        return self.count

    def set_state(self, state: int) -> None:
        self.count = state


class CountsOthers(Counts):
    """Of another class."""


def made(*given: Any, chief: bool = True, asynchronous: bool = False) -> Any:
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    trained: Any = SimpleNamespace(callbacks=keras.callbacks, model=model, package="keras")
    here = SimpleNamespace(is_chief=chief, traits=SimpleNamespace(asynchronous=asynchronous))
    return callbacks.Callbacks(list(given), trained, here, SimpleNamespace(tasks=1, index=0), "auto")


@pytest.mark.parametrize(("loss", "stops"), [(float("nan"), True), (float("inf"), True), (0.5, False)])
def test_terminate_on_nan_looks_at_epochs_where_batches_end_in_no_order(loss: float, stops: bool) -> None:
    run = made(keras.callbacks.TerminateOnNaN(), asynchronous=True)
    run.reset()
    run.train_begin(2, 4)
    run.epoch_end(0, {"loss": loss}, 4)
    assert run.stop_training == stops
    assert not run.per_batch
    assert not run.one_at_a_time


NAN = keras.callbacks.TerminateOnNaN
"""It keeps nothing."""


@pytest.mark.parametrize(
    ("before", "mine", "chief", "exact", "counts"),
    [
        ([Counts(1), CountsOthers(2), Counts(3)], [CountsOthers, Counts, Counts], True, True, [2, 1, 3]),
        ([CountsOthers(1), Counts(2)], [Counts], False, True, [2]),  # a worker may have fewer
        ([Counts(1), Counts(2)], [Counts], False, False, [1]),  # or that of the other one
        ([Counts(1)], [CountsOthers, Counts], True, False, [0, 1]),  # one without a state
        ([Counts(1)], [CountsOthers, Counts], False, False, [0, 1]),
        ([Counts(1), CountsOthers(2)], [CountsOthers], True, False, [2]),  # a state without its callback
        ([Counts(1)], [NAN, Counts], False, True, [1]),
        ([Counts(1)], [NAN, Counts], True, False, [1]),  # the chief had none
    ],
)
def test_each_callback_gets_the_state_of_its_class_in_any_order_or_a_difference_is_reported(
    before: list[Any], mine: list[Any], chief: bool, exact: bool, counts: list[int]
) -> None:
    here = [kind() for kind in mine]
    assert made(*here, chief=chief).set_state(made(*before).get_state()[0]) is exact
    assert [one.count for one in here if isinstance(one, Counts)] == counts


class Patient(keras.callbacks.EarlyStopping):  # type: ignore[misc]
    """A user's subclass of one of Keras's, with a state of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.warned = 0

    def get_state(self) -> int:
        return self.warned

    def set_state(self, state: int) -> None:
        self.warned = state


def test_a_subclass_of_kerass_keeps_both_its_own_state_and_kerass() -> None:
    before, mine = Patient(), Patient()
    chief = made(before)
    chief.train_begin(1, 1)
    before.wait, before.best, before.warned = 3, 0.25, 7
    assert chief.look_at_state() == []
    assert made(mine).set_state(chief.get_state()[0])
    assert (mine.wait, mine.best, mine.warned) == (3, 0.25, 7)


def test_a_state_without_a_set_state_method_is_not_saved() -> None:
    class Gives(keras.callbacks.Callback):  # type: ignore[misc]
        def get_state(self) -> int:
            return 1

    assert made(Gives()).look_at_state()


def test_a_state_that_training_makes_is_not_asked_for_before() -> None:
    class Times(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.began = 1.0

        def get_state(self) -> float:
            return self.began

        def set_state(self, state: float) -> None:
            self.began = state

    given = made(Times())
    given.look_at_state()
    given.epoch_begin(0)
    assert [each.state for each in given.get_state()[0]] == [{keeping.OWN: 1.0}]


def test_a_callback_state_that_cannot_be_saved_is_an_error_before_training() -> None:
    with pytest.raises(CallbackError, match="Counts"):
        made(Counts(object())).look_at_state()  # type: ignore[arg-type]


class Sums(keras.callbacks.Callback):  # type: ignore[misc]
    """Changes its array in place."""

    def __init__(self) -> None:
        super().__init__()
        self.sums = np.zeros(1000)

    def get_state(self) -> Any:
        return {"sums": self.sums}

    def set_state(self, state: Any) -> None:
        self.sums = state["sums"]


def test_a_saved_callback_state_does_not_change_as_training_goes_on() -> None:
    own, kerass = Sums(), keras.callbacks.EarlyStopping(restore_best_weights=True)
    run = made(own, kerass)
    run.train_begin(1, 1)
    kerass.best_weights = [np.zeros(1000)]
    kept, _ = run.get_state()
    own.sums += 1
    assert not kept[0].state[keeping.OWN]["sums"].any()
    assert kept[1].state[keeping.ATTRIBUTES]["best_weights"][0] is kerass.best_weights[0], (
        "Keras replaces it, so a copy would only take time"
    )


def test_an_array_of_objects_is_refused() -> None:
    own = Sums()
    own.sums = np.array([{}])
    with pytest.raises(CallbackError, match=r"Sums: .* an array of Python objects; return arrays of numbers"):
        made(own).get_state()
