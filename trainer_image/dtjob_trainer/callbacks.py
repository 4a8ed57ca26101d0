"""Keras callbacks in our loop: which ones are refused, how they are called, and what of them a checkpoint keeps."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

REFUSED = {
    "BackupAndRestore": "dtjob saves and resumes the run itself: set spec.checkpoint and leave it out",
    "ModelCheckpoint": "its saves would hang the group: set spec.checkpoint for checkpoints and save= for the model",
    "TensorBoard": "it reads variables at the chief alone, which hangs the group: leave it out",
    "SwapEMAWeights": "it swaps weights at the wrong places of this loop: leave it out",
}
"""Keras's callbacks that cannot be right here, and what to do instead."""

STATEFUL: Mapping[str, tuple[str, ...]] = {
    "EarlyStopping": ("wait", "stopped_epoch", "best", "best_epoch", "best_weights"),
    "ReduceLROnPlateau": ("wait", "best", "cooldown_counter"),
    "LearningRateScheduler": (),
    "TerminateOnNaN": (),
    "CSVLogger": (),
    "History": (),
}
"""What Keras's own callbacks must not forget over a restart (they have no get_state)."""

CHIEF_ONLY = ("CSVLogger",)
"""Callbacks that write files, and so run at the chief task alone."""

BATCH_METHODS = ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")


class CallbackError(ValueError):
    """A callback cannot be right in this loop; the message names it and the mend."""


class Callbacks:
    """The user's callbacks, called as Keras calls them."""

    def __init__(self, callbacks: Sequence[Any], model: Any, *, is_chief: bool, asynchronous: bool) -> None:
        for callback in callbacks:
            _check(callback, asynchronous)
        self._all = list(callbacks)
        running = [c for c in self._all if is_chief or type(c).__name__ not in CHIEF_ONLY]
        self._list = keras.callbacks.CallbackList(running, add_history=False, add_progbar=False, model=model)
        self._model = model
        self.per_batch = any(_overrides_batch_methods(c) for c in running)
        """Whether any callback wants to be called at every step."""

    @property
    def exact(self) -> bool:
        """Whether a checkpoint can keep every callback's state."""
        return all(type(c).__name__ in STATEFUL or hasattr(c, "get_state") for c in self._all)

    @property
    def stop_training(self) -> bool:
        """Whether a callback has asked to stop."""
        return bool(self._model.stop_training)

    def train_begin(self, epochs: int, steps: int) -> None:
        """Before the first step; a restored state is set after it, as callbacks reset themselves here."""
        self._model.stop_training = False
        self._list.set_params({"epochs": epochs, "steps": steps, "verbose": 0})
        self._list.on_train_begin()

    def train_end(self, logs: Mapping[str, float]) -> None:
        """After the last epoch."""
        self._list.on_train_end(dict(logs))

    def epoch_begin(self, epoch: int) -> None:
        """Before an epoch's first step; called again where a restart resumes inside the epoch."""
        self._list.on_epoch_begin(epoch)

    def epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """After an epoch, with metrics over all tasks, `val_` ones included; callbacks may add to them, as in Keras."""
        self._list.on_epoch_end(epoch, logs)

    def batch_begin(self, step: int) -> None:
        """Before a step, where `per_batch`."""
        self._list.on_train_batch_begin(step)

    def batch_end(self, step: int, loss: float) -> None:
        """After a step, where `per_batch`; logs hold the loss of this global batch."""
        self._list.on_train_batch_end(step, {"loss": loss})

    def get_state(self) -> list[Any]:
        """Each callback's state, as JSON can hold it; None where it cannot be had."""
        return [encode(_state_of(callback)) for callback in self._all]

    def set_state(self, states: Sequence[Any]) -> bool:
        """Restore what `get_state` gave; False where the callbacks are not those of that run."""
        if len(states) != len(self._all):
            return False
        for callback, state in zip(self._all, states, strict=True):
            _restore(callback, decode(state))
        return True


def encode(value: Any) -> Any:
    """`value` (numbers, text, lists, dicts, arrays) as JSON; arrays keep their bits."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        data = base64.b64encode(array.tobytes()).decode()
        return {"__array__": data, "dtype": array.dtype.str, "shape": list(array.shape)}
    if isinstance(value, Mapping):
        return {str(key): encode(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [encode(part) for part in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CallbackError(f"get_state() holds a {type(value).__name__}; return numbers, text, lists, dicts or arrays")


def decode(value: Any) -> Any:
    """What `encode` was given (tuples come back as lists)."""
    if isinstance(value, Mapping):
        if "__array__" in value:
            flat = np.frombuffer(base64.b64decode(value["__array__"]), np.dtype(value["dtype"]))
            return flat.reshape(value["shape"]).copy()
        return {key: decode(part) for key, part in value.items()}
    return [decode(part) for part in value] if isinstance(value, list) else value


def _state_of(callback: Any) -> Any:
    if hasattr(callback, "get_state"):
        return callback.get_state()
    return {name: getattr(callback, name, None) for name in STATEFUL.get(type(callback).__name__, ())}


def _restore(callback: Any, state: Any) -> None:
    if hasattr(callback, "set_state"):
        callback.set_state(state)
        return
    for name in STATEFUL.get(type(callback).__name__, ()):
        setattr(callback, name, state.get(name))


def _check(callback: Any, asynchronous: bool) -> None:
    name = type(callback).__name__
    for base in type(callback).__mro__:
        if base.__module__.startswith("keras.") and base.__name__ in REFUSED:
            raise CallbackError(f"callbacks: {name} cannot be used here; {REFUSED[base.__name__]}")
    if asynchronous and _overrides_batch_methods(callback):
        raise CallbackError(
            f"callbacks: {name} has methods for each batch, but under ParameterServer batches end in no order; "
            "use on_epoch_begin and on_epoch_end"
        )


def _overrides_batch_methods(callback: Any) -> bool:
    base = keras.callbacks.Callback
    return any(getattr(type(callback), name) is not getattr(base, name) for name in BATCH_METHODS)
