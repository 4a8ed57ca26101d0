# SPDX-License-Identifier: Apache-2.0
"""Keras callbacks in our loop: which ones are refused, and how they are called."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from dtjob_trainer.callbacks import bar, files, keeping
from dtjob_trainer.checkpoint.state import CallbackState
from dtjob_trainer.contract import log_line
from dtjob_trainer.errors import CallbackError
from dtjob_trainer.frameworks import callbacks as framework
from dtjob_trainer.frameworks import packages
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.strategies.ambient import outside_strategy

LEFT_OUT = {
    "BackupAndRestore": "dtjob saves and resumes the run itself; set spec.checkpoint",
}
"""Keras's callbacks that do nothing here, and why."""

CHIEF_ONLY = {
    "keras": ("CSVLogger", "ModelCheckpoint", "TensorBoard", "RemoteMonitor", "ProgbarLogger"),
    "tf_keras": ("CSVLogger", "RemoteMonitor", "ProgbarLogger"),
}
"""Callbacks of each package that write files or send or print, and so run at the chief task alone.

tf_keras reads moving statistics of all tasks as it saves: its other callbacks run everywhere, and write beside.
"""

FILES = {"CSVLogger": "filename", "ModelCheckpoint": "filepath"}
"""Those of them whose files a program reads again after its fit, and the attribute that has the path."""

BATCH_METHODS = ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")
TEST_BATCH_METHODS = ("on_test_batch_begin", "on_test_batch_end")
INSTEAD = "on_epoch_begin and on_epoch_end"
BY_EPOCHS = {
    "ModelCheckpoint": 'save_freq="epoch"',
    "TensorBoard": 'update_freq="epoch", profile_batch=0 and write_steps_per_second=False',
}
"""Arguments with which Keras's own callbacks have nothing to do after each batch."""
EPOCH_METHODS = ("on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_test_begin", "on_test_end")


class Callbacks:
    """The user's callbacks, called as Keras calls them."""

    def __init__(
        self,
        callbacks: Any,
        trained: TrainedModel,
        *,
        is_chief: bool,
        asynchronous: bool,
        tasks: int = 1,
        verbose: Any = "auto",
        writes: bool = False,
    ) -> None:
        """`callbacks` and `verbose`: as Keras's `fit` takes them; of a CallbackList, its callbacks and params.

        - writes: whether another task than the chief writes the files that programs read again (FILES).
        """
        package = trained.callbacks
        self._is_chief = is_chief
        self._all, self._params = _unpacked(callbacks, package.CallbackList)
        self.left_out = [why for callback in self._all if (why := _why_left_out(callback)) is not None]
        """Why callbacks that were given are not called."""
        self._all = [callback for callback in self._all if _why_left_out(callback) is None]
        if asynchronous:
            self._all = [_by_epochs(callback, package) for callback in self._all]
        for callback in self._all:
            _check(callback, package)
        self.one_at_a_time = [why for c in self._all if asynchronous and (why := _why_one_at_a_time(c, package))]
        """Why a step waits for the one before it, where it else would not."""
        of_loop = package.History, package.ProgbarLogger  # this loop keeps the one and prints as the other
        here = [is_chief or not _is_chiefs(c) or (writes and path_of(c) is not None) for c in self._all]
        self._running = [type(c) not in of_loop and runs for c, runs in zip(self._all, here, strict=True)]
        self.history = next((c for c in self._all if type(c) is package.History), None) or package.History()
        """Keras's History of the run: the user's, where one is among the callbacks."""
        verbose = self._params.get("verbose", verbose)
        self._verbose = bar.resolved(verbose, trained.package, asynchronous=asynchronous)
        barred = any(type(callback) is package.ProgbarLogger for callback in self._all)
        if not isinstance(callbacks, package.CallbackList):  # else Keras adds no bar
            barred |= verbose != "auto"
        barred &= bool(verbose)
        self.level: log_line.Level | None = None if barred else "info" if verbose else "debug"
        """The level of the loop's own line after each epoch. None: `verbose` asks for Keras's lines."""
        live = barred and self._verbose in (1, "auto") and tasks == 1 and not asynchronous and bar.is_terminal()
        self._bar = bar.make(package, live=live) if barred and is_chief else None
        called = [_alone(c, package.Callback) if tasks > 1 and _is_chiefs(c) else c for c in self._here()]
        self._own = [c for c, given in zip(called, self._here(), strict=True) if not keeping.is_kerass(given)]
        self._last = _last(package.Callback)
        self._model = trained.model
        self._compiled = _compiled(self._model)
        bars = [] if self._bar is None else [self._bar]
        self._own += bars
        # tf_keras refuses methods for batches where it finds ParameterServer, whose steps it does not wait for
        make = outside_strategy(package.CallbackList) if asynchronous else package.CallbackList
        self._list = make([*called, *bars, self._last], add_history=False, add_progbar=False)
        self._counter = framework.counter_of(self._model)
        self._first = 0
        self.not_kept: list[str] = []
        """Why the states that `get_state` gave are not all of the callbacks' state, and what to write instead."""
        # of all callbacks, wherever they run: what is read for them is read by all tasks together (`alike.agree`)
        self.per_batch = live or any(_wants_batches(c, package, BATCH_METHODS) for c in self._all)
        """Whether any callback wants to be called at every step."""
        self.per_test_batch = any(_wants_batches(c, package, TEST_BATCH_METHODS) for c in self._all)
        """Whether any callback wants to be called at every batch of validation."""
        self.may_part = False
        """Whether there are callbacks in any of several tasks, one of which may do what is not done in the others."""

    @property
    def exact(self) -> bool:
        """Whether a checkpoint can keep every callback's state."""
        return all(keeping.is_kept(callback) for callback in self._all)

    @property
    def stop_training(self) -> bool:
        """Whether a callback has asked to stop."""
        return bool(self._model.stop_training)

    @property
    def stop_evaluating(self) -> bool:
        """Whether a callback has asked to stop the validation that runs. tf_keras knows of no such wish."""
        return bool(getattr(self._model, "stop_evaluating", False))

    @property
    def begin_by_own(self) -> bool:
        """Whether a callback that is called here has its own code for the begin of training or of an epoch."""
        return any(_begins_by_own(callback) for callback in self._here())

    def reset(self) -> None:
        """Set what the model tells callbacks to the values before a training."""
        self._model.stop_training = False
        if self._counter is not None:
            self._counter.assign(0)

    def _see_compiled(self) -> None:
        if any(one is not other for one, other in zip(self._compiled, _compiled(self._model), strict=True)):
            raise CallbackError(
                "callbacks: compile() was called while fit runs, whose step has the optimizer and the loss of before; "
                "let fit end, call compile(), and call fit again with initial_epoch"
            )

    def train_begin(self, epochs: int, steps: int | None) -> None:
        """Before the first step; `steps` of an epoch are None where nobody knows, as in Keras.

        The variables are restored before, as callbacks may look at them. The state of callbacks is restored after, as
        they reset themselves here.
        """
        self._list.set_model(self._model)
        params = {"verbose": self._verbose, "epochs": epochs, "steps": steps, **self._params}
        self._list.set_params(params)
        self.history.set_params(params)
        self._compiled = _compiled(self._model)
        self._list.on_train_begin()
        for callback in self._here():
            keeping.begin(callback)

    def train_end(self, logs: Mapping[str, Any]) -> None:
        """After the last epoch."""
        self._list.on_train_end(dict(logs))

    def epoch_begin(self, epoch: int) -> None:
        """Before an epoch's first step. Raises CallbackError if a callback has called compile()."""
        self._list.on_epoch_begin(epoch)
        self._see_compiled()

    def epoch_begin_again(self, epoch: int) -> None:
        """Where a restart resumes inside an epoch: tell the user's own callbacks, which may note at its begin what they
        need at its end. Keras's own are restored as they were within it."""
        for callback in self._own:
            callback.on_epoch_begin(epoch)

    def epoch_end(self, epoch: int, logs: Mapping[str, Any], steps: int) -> dict[str, Any]:
        """After an epoch of so many steps, with metrics over all tasks, `val_` ones included; returns them with what
        callbacks added."""
        if self._bar is not None:
            self._bar.seen = steps
        self._list.on_epoch_end(epoch, dict(logs))
        self._see_compiled()
        return dict(self._last.logs)

    def batch_begin(self, step: int) -> None:
        """Before a step, where `per_batch`."""
        self._first = step
        self._list.on_train_batch_begin(step)

    def batch_end(self, step: int, logs: Mapping[str, Any]) -> None:
        """After a step (the last of those that ran in one call), where `per_batch`; logs as in Keras: this epoch's."""
        if self._counter is not None:
            self._counter.assign_add(step - self._first + 1)
        self._list.on_train_batch_end(step, dict(logs))

    def evaluation_begin(self, steps: int | None) -> None:
        """Before a validation that is no part of a training, of so many `steps` (None: unknown)."""
        self._list.set_model(self._model)
        self._list.set_params({"verbose": self._verbose, "epochs": 1, "steps": steps, **self._params})

    def test_begin(self) -> None:
        """Before a validation."""
        if hasattr(self._model, "stop_evaluating"):
            self._model.stop_evaluating = False
        self._list.on_test_begin()

    def test_end(self, logs: Mapping[str, Any]) -> None:
        """After a validation, with its metrics (without `val_`)."""
        self._list.on_test_end(dict(logs))

    def test_batch_begin(self, step: int) -> None:
        """Before a batch of validation, where `per_test_batch`."""
        self._list.on_test_batch_begin(step)

    def test_batch_end(self, step: int, logs: Mapping[str, Any]) -> None:
        """After a batch of validation, where `per_test_batch`, with the metrics so far."""
        self._list.on_test_batch_end(step, dict(logs))

    @property
    def classes(self) -> list[str]:
        """The name of each callback's class, by which its state is found again."""
        return [f"{type(callback).__module__}.{type(callback).__qualname__}" for callback in self._all]

    def look_at_state(self) -> None:
        """Raise CallbackError where no checkpoint can hold a callback's state, as far as it has any before training.

        It sets `not_kept`.
        """
        self.not_kept = []
        for callback in self._all:
            try:
                self.not_kept += _kept(callback)[1]
            except CallbackError:
                raise
            except Exception:  # of what its methods are yet to set
                continue

    def get_state(self) -> list[CallbackState]:
        """Each callback's state, as a checkpoint can hold it. For the chief task, where all of them run. It sets
        `not_kept`.

        Raises CallbackError where none can hold it.
        """
        nothing: tuple[Any, list[str]] = {}, []  # of a History and a bar, which the loop has itself
        kept = [_kept(c) if runs else nothing for c, runs in zip(self._all, self._running, strict=True)]
        self.not_kept = [why for _, each in kept for why in each]
        return [CallbackState(name, state) for name, (state, _) in zip(self.classes, kept, strict=True)]

    def files_left_out(self) -> list[str]:
        """What to write instead where files of callbacks are lost with the pod."""
        writers = (c for c in self._here() if files.are_kept(c))
        return [why for callback in writers if (why := files.left_out(callback)) is not None]

    def set_state(self, states: Sequence[CallbackState]) -> bool:
        """Restore what `get_state` gave of the chief's callbacks.

        Returns False if a callback here has no state there, or if the chief no longer has a callback that it had.
        Another task may have fewer callbacks. Each gets the state of the chief's callback of its class.
        """
        mine = self.classes
        left, found = list(states), True
        for callback, name, runs in zip(self._all, mine, self._running, strict=True):
            place = next((place for place, each in enumerate(left) if each.of == name), None)
            if place is None:  # one that keeps nothing, of another task, has lost nothing
                found = found and not self._is_chief and keeping.state_of(callback) == {}
                continue
            state = left.pop(place).state
            if runs:
                keeping.restore(callback, keeping.decode(state), self._model)
        # of two of a class, nobody knows which one it is
        return found and not (self._is_chief and left) and not {each.of for each in left} & set(mine)

    def _here(self) -> list[Any]:
        return [callback for callback, runs in zip(self._all, self._running, strict=True) if runs]


def _unpacked(callbacks: Any, list_of_them: Any) -> tuple[list[Any], Mapping[str, Any]]:
    """Every callback, whether one was given, a list, a CallbackList (of class `list_of_them`) or none; its params."""
    if isinstance(callbacks, list_of_them):
        return list(callbacks.callbacks), getattr(callbacks, "params", None) or {}
    return (keras.tree.flatten(callbacks) if callbacks is not None else []), {}


def _last(base: Any) -> Any:
    """The last of all callbacks: sees what the others made of an epoch's logs. `base` is the package's Callback."""

    class Last(base):  # type: ignore[misc]
        logs: Mapping[str, Any]

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            self.logs = logs or {}

    return Last()


def _compiled(model: Any) -> tuple[Any, Any]:
    """What compile() gives a model anew."""
    return getattr(model, "optimizer", None), getattr(model, "loss", None)


def _alone(callback: Any, base: Any) -> Any:
    """A callback of the chief among several tasks, called outside of the strategy. `base` is the package's Callback.

    In its scope, all tasks have to make what one makes, and saving a model makes variables.
    """

    class Alone(base):  # type: ignore[misc]
        def set_params(self, params: Any) -> None:
            callback.set_params(params)

        def set_model(self, model: Any) -> None:
            outside_strategy(callback.set_model)(model)

    alone = Alone()
    for name in (*EPOCH_METHODS, *BATCH_METHODS[2:], *TEST_BATCH_METHODS):
        setattr(alone, name, outside_strategy(getattr(callback, name)))
    return alone


def _is_chiefs(callback: Any) -> bool:
    bases = type(callback).__mro__
    return any(base.__name__ in CHIEF_ONLY.get(base.__module__.partition(".")[0], ()) for base in bases)


def paths_of(callbacks: Any, package: Any) -> list[str]:
    """The paths of files that `callbacks`, as `fit` takes them, write at the chief and a program reads again."""
    found, _ = _unpacked(callbacks, package.CallbackList)
    return [path for callback in found if _is_chiefs(callback) and (path := path_of(callback)) is not None]


def path_of(callback: Any) -> str | None:
    """The path of the file that a callback writes and a program reads again. None: it writes no such file."""
    name = next((FILES[base.__name__] for base in type(callback).__mro__ if _is_file_writer(base)), None)
    return None if name is None or not hasattr(callback, name) else str(getattr(callback, name))


def _is_file_writer(base: type) -> bool:
    return packages.is_of(base) and base.__name__ in FILES


def _why_left_out(callback: Any) -> str | None:
    """Why `callback` is not called. None: it is."""
    for base in type(callback).__mro__:
        if packages.is_of(base) and base.__name__ in LEFT_OUT:
            return f"callbacks: {type(callback).__name__} is left out: {LEFT_OUT[base.__name__]}"
    return None


def _check(callback: Any, package: Any) -> None:
    name = type(callback).__name__
    if not isinstance(callback, package.Callback):
        home = package.Callback.__module__.partition(".")[0]
        raise CallbackError(f"callbacks: {name} must be one of {home}.callbacks, as the model is of {home}")


def _why_one_at_a_time(callback: Any, package: Any) -> str | None:
    """What to say of a callback with methods for batches under ParameterServer. None: it has none."""
    if not _wants_batches(callback, package, (*BATCH_METHODS, *TEST_BATCH_METHODS)):
        return None
    return (
        f"callbacks: {type(callback).__name__} has methods for each batch, so under ParameterServer a step waits for "
        f"the one before it, and one worker trains at a time; to use all workers, use {_instead_of_batches(callback)}"
    )


def _by_epochs(callback: Any, package: Any) -> Any:
    """The callback, or one that looks at each epoch in place of Keras's TerminateOnNaN, which looks at each batch."""
    if type(callback) is not package.TerminateOnNaN:
        return callback

    class TerminateOnNaN(package.Callback):  # type: ignore[misc]
        def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
            loss = (logs or {}).get("loss")
            if loss is not None and not math.isfinite(loss):
                sys.stdout.write(f"Epoch {epoch}: Invalid loss, terminating training\n")
                self.model.stop_training = True

        def get_state(self) -> dict[str, Any]:
            return {}

        def set_state(self, state: Any) -> None:
            pass

    return TerminateOnNaN()


def _instead_of_batches(callback: Any) -> str:
    """What to give to one of Keras's own callbacks, or to write in one of the program's."""
    for base in type(callback).__mro__:
        if packages.is_of(base) and base.__name__ in BY_EPOCHS:
            return BY_EPOCHS[base.__name__]
        if any(name in vars(base) for name in BATCH_METHODS):
            break
    return INSTEAD


def _kept(callback: Any) -> tuple[Any, list[str]]:
    """The state of `callback`, and why that is not all of it."""
    try:
        state, why = keeping.kept(callback)
    except CallbackError as error:
        raise CallbackError(f"callbacks: {type(callback).__name__}: {error}") from None
    return state, [f"callbacks: {type(callback).__name__}: {each}" for each in why]


def _wants_batches(callback: Any, package: Any, methods: Sequence[str]) -> bool:
    """Whether one of the batch `methods` of `callback` does anything; of the user's subclass of Keras's, one of its
    own or Keras's."""
    kerass = keeping.keras_class(callback) or package.Callback
    if any(_plain(callback, name) is not getattr(kerass, name) for name in methods):
        return True
    match kerass.__name__:
        case "ProgbarLogger":  # which the loop has of its own
            return False
        case "ModelCheckpoint":
            return bool(callback.save_freq != "epoch") and methods is not TEST_BATCH_METHODS
        case "TensorBoard":
            each = callback.update_freq != "epoch"
            return bool(each or framework.profiles(callback) or callback.write_steps_per_second)
    return any(_plain(callback, name) is not getattr(package.Callback, name) for name in methods)


def _begins_by_own(callback: Any) -> bool:
    """Whether a callback has code of the program for the begin of training or of an epoch."""
    methods = [_plain(callback, name) for name in ("on_train_begin", "on_epoch_begin")]
    return not all(packages.is_of(method) for method in methods)


def _plain(callback: Any, name: str) -> Any:
    """A method as its class has it; what was set on the object itself as it is."""
    method = getattr(callback, name)
    return getattr(method, "__func__", method)
