# SPDX-License-Identifier: Apache-2.0
"""Keras callbacks in our loop: which ones are refused, and how they are called."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import keras

from dtjob_trainer.callbacks import files, keeping
from dtjob_trainer.callbacks.keeping import keras_name
from dtjob_trainer.checkpoint.state import CallbackState
from dtjob_trainer.contract import log_line
from dtjob_trainer.errors import CallbackError
from dtjob_trainer.frameworks import callbacks as framework
from dtjob_trainer.frameworks import packages
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.ambient import outside_strategy
from dtjob_trainer.strategies.collective import Group

LEFT_OUT = "BackupAndRestore"
"""Keras's callback that does nothing here: dtjob saves and resumes the run itself."""

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
BY_EPOCHS = {
    "ModelCheckpoint": 'save_freq="epoch"',
    "TensorBoard": 'update_freq="epoch", profile_batch=0 and write_steps_per_second=False',
}
"""Arguments with which Keras's own callbacks have nothing to do after each batch."""
EPOCH_METHODS = ("on_train_begin", "on_train_end", "on_epoch_begin", "on_epoch_end", "on_test_begin", "on_test_end")


class Callbacks:
    """The user's callbacks, called as Keras calls them."""

    def __init__(self, callbacks: Any, trained: TrainedModel, here: Runtime, group: Group, verbose: Any) -> None:
        """`callbacks` and `verbose`: as Keras's `fit` takes them; of a CallbackList, its callbacks and params.

        Collective.
        """
        package, self._model = trained.callbacks, trained.model
        asynchronous, self._is_chief = here.traits.asynchronous, here.is_chief
        is_list = isinstance(callbacks, package.CallbackList)
        given = callbacks.callbacks if is_list else [] if callbacks is None else keras.tree.flatten(callbacks)
        self._params: Mapping[str, Any] = (getattr(callbacks, "params", None) or {}) if is_list else {}
        self.left_out = [_name(callback) for callback in given if keras_name(callback) == LEFT_OUT]
        """The classes of callbacks that were given and are not called."""
        of_loop = package.History, package.ProgbarLogger  # this loop keeps the one and prints as the other
        self._all = [each for each in given if keras_name(each) != LEFT_OUT and type(each) not in of_loop]
        if asynchronous:
            self._all = [_by_epochs(callback, package) for callback in self._all]
        for callback in self._all:
            _check(callback, package)
        self.history = next((each for each in given if type(each) is package.History), None) or package.History()
        """Keras's History of the run: the user's, where one is among the callbacks."""
        verbose = self._params.get("verbose", verbose)
        barred = any(type(callback) is package.ProgbarLogger for callback in given)
        barred |= not is_list and verbose != "auto"  # to a CallbackList, Keras adds no bar
        barred &= bool(verbose)
        self.level: log_line.Level | None = None if barred else "info" if verbose else "debug"
        """The level of the loop's own line after each epoch. None: `verbose` asks for Keras's lines."""
        if trained.package == "tf_keras" and verbose == "auto":
            verbose = 2 if asynchronous else 1
        self._verbose = verbose
        in_terminal = getattr(sys.stdout, "isatty", bool)()  # elsewhere a log grows by a line for each change of a bar
        live = barred and verbose in (1, "auto") and group.tasks == 1 and not asynchronous and in_terminal
        self._bar = _make_bar(package, live=live) if barred and here.is_chief else None
        self._last = _last(package.Callback)
        self.list = self._list_of(trained, group, asynchronous=asynchronous)
        """Keras's CallbackList, whose methods a loop calls that need no more than that."""
        self._counter = framework.counter_of(self._model)
        self._compiled = _compiled(self._model)
        # of all callbacks, wherever they run: what is read for them is read by all tasks together (`alike.agree`)
        of_batches, of_tests = (
            [_wants_batches(callback, package, methods) for callback in self._all]
            for methods in (BATCH_METHODS, TEST_BATCH_METHODS)
        )
        self.per_batch, self.per_test_batch = live or any(of_batches), any(of_tests)
        """Whether any callback wants to be called at every step, and at every batch of validation."""
        wanting = zip(self._all, of_batches, of_tests, strict=True)
        self.one_at_a_time = [_why_one_at_a_time(c) for c, *wants in wanting if asynchronous and any(wants)]
        """Why a step waits for the one before it, where it else would not."""
        self.may_part = False
        """Whether there are callbacks in any of several tasks, one of which may do what is not done in the others."""

    def _list_of(self, trained: TrainedModel, group: Group, *, asynchronous: bool) -> Any:
        """Keras's CallbackList of those that are called in this task. Collective."""
        package = trained.callbacks
        of_chief = [keras_name(callback) in CHIEF_ONLY[trained.package] for callback in self._all]
        paths = [_path_of(callback) if chiefs else None for callback, chiefs in zip(self._all, of_chief, strict=True)]
        writes = files.writes_here(group, [path for path in paths if path is not None])
        self._running = [
            self._is_chief or not chiefs or (path is not None and writes)
            for chiefs, path in zip(of_chief, paths, strict=True)
        ]
        called = [
            _alone(callback, package.Callback) if group.tasks > 1 and chiefs else callback
            for callback, chiefs, runs in zip(self._all, of_chief, self._running, strict=True)
            if runs
        ]
        bars = [] if self._bar is None else [self._bar]
        self._own = [c for c, of in zip(called, self._here(), strict=True) if not keeping.is_kerass(of)] + bars
        # tf_keras refuses methods for batches where it finds ParameterServer, whose steps it does not wait for
        make = outside_strategy(package.CallbackList) if asynchronous else package.CallbackList
        return make([*called, *bars, self._last], add_history=False, add_progbar=False)

    @property
    def watched(self) -> list[Literal["train", "evaluate"]]:
        """The phases of which some callback of any task sees each step."""
        seen: dict[Literal["train", "evaluate"], bool] = {"train": self.per_batch, "evaluate": self.per_test_batch}
        return [phase for phase, each in seen.items() if each]

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
        """Whether a callback that is called here has code of the program for the begin of training or of an epoch."""
        begins = [_plain(c, name) for c in self._here() for name in ("on_train_begin", "on_epoch_begin")]
        return not all(map(packages.is_of, begins))

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

    def begin(self, epochs: int, steps: int | None) -> None:
        """Before a training or an evaluation; `steps` of an epoch are None where nobody knows, as in Keras."""
        params = {"verbose": self._verbose, "epochs": epochs, "steps": steps, **self._params}
        self.list.set_model(self._model)
        for each in (self.list, self.history):
            each.set_params(params)

    def train_begin(self, epochs: int, steps: int | None) -> None:
        """Before the first step of a training.

        The variables are restored before, as callbacks may look at them. The state of callbacks is restored after, as
        they reset themselves here.
        """
        self.begin(epochs, steps)
        self._compiled = _compiled(self._model)
        self.list.on_train_begin()
        for callback in self._here():
            keeping.begin(callback)

    def epoch_begin(self, epoch: int) -> None:
        """Before an epoch's first step. Raises CallbackError if a callback has called compile()."""
        self.list.on_epoch_begin(epoch)
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
        self.list.on_epoch_end(epoch, dict(logs))
        self._see_compiled()
        return dict(self._last.logs)

    def batch_end(self, step: int, count: int, logs: Mapping[str, Any]) -> None:
        """After a call of `count` steps, the last of which is `step`; logs as in Keras: this epoch's."""
        if self._counter is not None:
            self._counter.assign_add(count)
        self.list.on_train_batch_end(step, dict(logs))

    def test_begin(self) -> None:
        """Before a validation."""
        if hasattr(self._model, "stop_evaluating"):
            self._model.stop_evaluating = False
        self.list.on_test_begin()

    @property
    def classes(self) -> list[str]:
        """The name of each callback's class, by which its state is found again."""
        return [f"{type(callback).__module__}.{type(callback).__qualname__}" for callback in self._all]

    def look_at_state(self) -> list[str]:
        """Why a checkpoint cannot hold all of the callbacks' state, as far as they have any before training.

        Raises CallbackError where none can hold it.
        """
        why: list[str] = []
        for callback in self._all:
            try:
                why += _kept(callback)[1]
            except CallbackError:
                raise
            except Exception:  # of what its methods are yet to set
                continue
        return why

    def get_state(self) -> tuple[list[CallbackState], list[str]]:
        """Each callback's state, as a checkpoint can hold it; why that is not all of it, with what to write instead.

        For the chief task, where all of them run. Raises CallbackError where no checkpoint can hold it.
        """
        kept = list(map(_kept, self._all))
        states = [CallbackState(name, state) for name, (state, _) in zip(self.classes, kept, strict=True)]
        return states, [why for _, each in kept for why in each]

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
                found = found and not self._is_chief and keeping.kept(callback)[0] == {}
                continue
            state = left.pop(place).state
            if runs:
                keeping.restore(callback, keeping.decode(state), self._model)
        # of two of a class, nobody knows which one it is
        return found and not (self._is_chief and left) and not {each.of for each in left} & set(mine)

    def _here(self) -> list[Any]:
        return [callback for callback, runs in zip(self._all, self._running, strict=True) if runs]


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


def _path_of(callback: Any) -> str | None:
    """The path of the file that a callback writes and a program reads again. None: it writes no such file."""
    name = FILES.get(keras_name(callback), "")
    return str(getattr(callback, name)) if hasattr(callback, name) else None


def _name(callback: Any) -> str:
    return type(callback).__name__


def _check(callback: Any, package: Any) -> None:
    if not isinstance(callback, package.Callback):
        home = package.Callback.__module__.partition(".")[0]
        raise CallbackError(f"callbacks: {_name(callback)} must be one of {home}.callbacks, as the model is of {home}")


def _why_one_at_a_time(callback: Any) -> str:
    """What to say of a callback with methods for batches under ParameterServer."""
    by_epochs = BY_EPOCHS.get(keras_name(callback))
    return (
        f"callbacks: {_name(callback)} has methods for each batch, so under ParameterServer a step waits for the one "
        "before it, and one worker trains at a time; to use all workers, use "
        f"{by_epochs + ', or ' if by_epochs else ''}on_epoch_begin and on_epoch_end"
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


def _make_bar(package: Any, *, live: bool) -> Any:
    """Keras's own progress bar, as a callback.

    - live: show each step. Else an epoch is shown once it has ended, which needs no metrics after each step.
    """

    class Bar(package.ProgbarLogger):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
            if live:
                super().on_train_batch_end(batch, logs)

    return Bar(**({"count_mode": "steps"} if package.__name__.startswith("tf_keras.") else {}))


def _kept(callback: Any) -> tuple[Any, list[str]]:
    """The state of `callback`, and why that is not all of it."""
    try:
        state, why = keeping.kept(callback)
    except CallbackError as error:
        raise CallbackError(f"callbacks: {_name(callback)}: {error}") from None
    return state, [f"callbacks: {_name(callback)}: {each}" for each in why]


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


def _plain(callback: Any, name: str) -> Any:
    """A method as its class has it; what was set on the object itself as it is."""
    method = getattr(callback, name)
    return getattr(method, "__func__", method)
