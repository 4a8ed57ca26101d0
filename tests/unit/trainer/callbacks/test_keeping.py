# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.callbacks.keeping: what a callback that knows nothing of dtjob keeps over a restart."""

import collections
import re
from typing import Any

import numpy as np
import pytest

keras = pytest.importorskip("keras")
state = pytest.importorskip("dtjob_trainer.callbacks.keeping")
packing = pytest.importorskip("dtjob_trainer.checkpoint.packing")


class Keeps(keras.callbacks.Callback):  # type: ignore[misc]
    """Has settings, and state of several kinds."""

    def __init__(self, losses: list[float], directory: str = "/tmp/first") -> None:
        super().__init__()
        self.directory, self.losses, self.table = directory, losses, np.arange(6.0)
        self.by_epoch: dict[Any, Any] = {}
        self.best: Any = np.inf
        self.pair = (1, 2)


def after_restart(callback: Any, anew: Any) -> Any:
    """`anew`, a callback of another process, with the state of `callback`."""
    state.begin(anew)
    state.restore(anew, state.decode(state.encode(state.kept(callback)[0])), None)
    return anew


def changed() -> Keeps:
    callback = Keeps([])
    state.begin(callback)
    callback.losses.append(0.5)
    callback.by_epoch[1] = {"loss": 0.5}
    callback.by_epoch[2, "val"] = 1
    callback.best = np.float32(0.5)
    callback.pair = (3, 4)
    callback.table[2] = -1.0
    callback.weights = [np.ones(3), np.zeros((0, 2))]
    return callback


def test_attributes_that_training_has_changed_are_restored() -> None:
    losses: list[float] = []
    found = after_restart(changed(), Keeps(losses))
    assert found.losses is losses == [0.5]
    assert found.by_epoch == {1: {"loss": 0.5}, (2, "val"): 1}
    assert f"{found.best:.2f}" == "0.50"
    assert found.pair == (3, 4)
    assert found.table.tolist() == [0, 1, -1, 3, 4, 5]
    assert [part.shape for part in found.weights] == [(3,), (0, 2)]


def test_restored_attributes_are_saved_again_and_settings_are_those_of_the_new_process() -> None:
    again = after_restart(changed(), Keeps([], "/tmp/second"))
    assert again.directory == "/tmp/second"
    assert state.encode(state.kept(again)[0]).keys() == {state.ATTRIBUTES}
    assert after_restart(again, Keeps([])).losses == [0.5]


def monitored(kind: Any) -> Any:
    callback = kind(monitor="loss", min_delta=0.1, patience=3)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback.set_model(model)
    callback.on_train_begin()
    return callback


@pytest.mark.parametrize("subclass", [False, True])
@pytest.mark.parametrize("name", ["EarlyStopping", "ReduceLROnPlateau"])
def test_kerass_own_go_on_with_what_their_first_epoch_has_set(name: str, subclass: bool) -> None:
    """Keras learns then how to compare the metric, and changes the sign of `min_delta`: once, not in each process."""
    kind = getattr(keras.callbacks, name)
    kind = type("Mine", (kind,), {}) if subclass else kind
    before = monitored(kind)
    state.begin(before)
    before.on_epoch_end(0, {"loss": 1.0})
    before.on_epoch_end(1, {"loss": 0.95})
    again = after_restart(before, monitored(kind))
    for callback in (before, again):
        callback.on_epoch_end(2, {"loss": 0.94})
    assert (again.wait, again.best, again.min_delta) == (before.wait, before.best, before.min_delta) == (2, 1.0, -0.1)


@pytest.mark.parametrize("name", ["Early", "EarlyStopping"])
def test_a_subclass_of_kerass_keeps_the_attributes_of_both(name: str) -> None:
    """Also one of the same name."""
    early = type(name, (keras.callbacks.EarlyStopping,), {"seen": 0})
    callback = early(patience=3)
    assert not state.is_kerass(callback)
    state.begin(callback)
    callback.wait, callback.seen = 2, 7
    found = after_restart(callback, early(patience=3))
    assert (found.wait, found.seen) == (2, 7)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ([1, "a", None], True),
        (len, False),
        (np.array([object()]), False),
        ({1, 2}, False),
        (keras.layers.Dense, True),
        (lambda epoch: epoch, True),
        ((lambda count: lambda: count)(1), False),
    ],
)
def test_resume_is_exact_where_all_attributes_can_be_held(value: Any, kept: bool) -> None:
    callback = Keeps([])
    state.begin(callback)
    callback.other = value
    assert (state.kept(callback)[1] == []) == kept


def test_a_list_that_holds_itself_is_left_out() -> None:
    losses: list[Any] = []
    losses.append(losses)
    callback = Keeps(losses)
    state.begin(callback)
    assert state.kept(callback)[1]
    assert state.kept(callback)[0] == {}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            collections.deque([1]),
            r"attribute other \(a deque\); use numbers, text, lists, dicts or arrays, or give the",
        ),
        (
            {str(number): number for number in range(state.MOST_PARTS)},
            r"other \(more than 262144 values that are not in",
        ),
    ],
)
def test_an_attribute_that_no_checkpoint_can_hold_is_named(value: Any, words: str) -> None:
    callback = Keeps([])
    state.begin(callback)
    callback.losses.append(0.5)
    callback.other = value
    kept, (why,) = state.kept(callback)
    assert kept == {state.ATTRIBUTES: {"losses": [0.5]}}
    assert re.search(words, why)


@pytest.mark.parametrize("kind", [float, int, np.float32, str])
def test_a_list_of_a_million_numbers_is_no_text_in_a_save(kind: Any) -> None:
    callback = Keeps([])
    state.begin(callback)
    callback.losses += [kind(number) for number in range(1_000_000 if kind is not str else 2_000)]
    text, tensors = packing.pack(state.kept(callback)[0])
    assert (len(text) < 1000) == (kind is not str)
    read = packing.unpack(text, lambda name, _: tensors[name])
    again = Keeps([])
    state.restore(again, state.decode(read), None)
    assert again.losses == callback.losses
    assert {*map(type, again.losses)} == {kind}


def test_a_large_array_that_is_replaced_or_rewritten_is_kept():
    for change in (lambda array: array + 1, lambda array: np.multiply(array, 2, out=array)):
        callback = Keeps([])
        callback.table = np.arange(3.0 * state.LOOKED_AT)
        state.begin(callback)
        assert "table" not in state.kept(callback)[0].get(state.ATTRIBUTES, {})
        callback.table = change(callback.table)
        assert np.array_equal(after_restart(callback, Keeps([])).table, callback.table)
