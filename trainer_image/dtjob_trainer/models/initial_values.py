# SPDX-License-Identifier: Apache-2.0
"""Variables of several tasks begin alike: their initial values are compared, all of them in one exchange.

TensorFlow has the chief send each variable's initial value as it is made, and every task wait for it: of the 10 seconds
in which three tasks on two cores made the 750 variables of a ResNet50 and its Adam, these exchanges took 6 (measured).
But all tasks draw from one seed, so that they have the same values already, and after a restart all come from the
checkpoint. So each task keeps its own until the next step or the start of `fit` or `train`, and where some began with
another value, all take there what the chief has.
"""

import contextlib
import weakref
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import StateError
from dtjob_trainer.frameworks import functions, hooks, tensorflow
from dtjob_trainer.models.kept_variables import Plain, State, copies_of, named
from dtjob_trainer.models.values import Held
from dtjob_trainer.strategies.agreement import Agreement, digest
from dtjob_trainer.strategies.collective import Group

MEND = (
    "make the same ones in every task, in the same order, and call strategy.run() in all tasks alike; load a model in "
    "all tasks, and not within `if` for one of them or for those that have its file"
)


@dataclass(frozen=True)
class _Made:
    """A variable, and digests of its kind and of its initial value."""

    variable: weakref.ref[Any]
    kind: int
    initial: int


class InitialValues:
    """The initial values of the variables that were made under a strategy since the last comparison."""

    def __init__(self) -> None:
        self._group: Any = None
        """The tasks that train together; None for one task alone, which compares nothing."""
        self._made: list[_Made] = []
        self._digests: list[tuple[int, int]] = []
        """Those of the variable that is being made."""
        self._held = self._in_step = False

    def watch(self, strategy: Any, task: Task) -> None:
        """From now on, compare the initial values of `strategy` in one exchange, if `task` trains with others under it.

        A strategy whose parts have other names than TensorFlow 2.21's goes on as it did.
        """
        group = Group(strategy, task)
        if group.tasks == 1:
            return
        self._group = group
        if hooks.missing(tensorflow.VARIABLE_MADE) or hooks.missing(tensorflow.INITIAL_VALUE):
            return
        extended = strategy.extended
        hooks.put(tensorflow.VARIABLE_MADE, hooks.around(self._create), on=extended)
        hooks.put(tensorflow.INITIAL_VALUE, hooks.around(self._initial_value), on=extended)
        # as it leaves TensorFlow's own alone, AutoGraph is not to convert this
        hooks.put(tensorflow.RUN, lambda run: functions.left_unconverted(hooks.around(self._run)(run)), on=strategy)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While this lasts, steps are traced of which none is run: compare nothing."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def begin(self, call: int) -> None:
        """Compare initial values at the begin of a stage, also if this task has made no variables. Collective.

        `call`: how many calls of `fit` and `train` there were. Returns once all tasks are there: one may take steps of
        its own before. Raises StateError, in all tasks alike, where one has made other variables, or is in another
        call.
        """
        while self._group is not None and not self._exchange(call + 1).all():
            continue

    def agree_on_new(self) -> None:
        """Have variables begin alike if any were made since the last comparison. Collective."""
        if self._made:
            self._exchange(0)

    def agree(self, restored: State | None) -> None:
        """Give variables made since the last comparison the chief's values, where one began apart. Collective.

        `restored`: what has got the values of a checkpoint. Raises StateError, in all tasks alike, where one has made
        other variables.
        """
        if self._group is not None:
            self._exchange(0, restored)

    def _exchange(self, begins: int, restored: State | None = None) -> npt.NDArray[np.float64]:
        """Compare, and return what each task `begins`: the number of a call of the program and 1, or 0 for none."""
        made, self._made = self._made, []
        other = "task {task} has made %s; " + MEND
        facts = Agreement(self._group).add("begins", begins)
        facts.add("made", len(made), other % "{mine} variables and {chief} {his}", error=StateError)
        facts.add("kinds", digest([one.kind for one in made]), other % "other variables than {chief}", error=StateError)
        found = facts.add("values", digest([one.initial for one in made])).exchange()
        self._see_same_calls(found["begins"][:, 0])
        if not (found["values"] == found["values"][0]).all():
            self._take_the_chiefs(made, set() if restored is None else restored.handles())
        return found["begins"][:, 0]

    def _see_same_calls(self, begins: npt.NDArray[np.float64]) -> None:
        first = int(np.argmax(begins > 0))
        for task, other in zip(self._group.members, begins, strict=True):
            if other not in (0, begins[first]):
                self._group.leave_together()
                raise StateError(
                    f"task {task} is in call {other - 1:.0f} of fit or train, and {self._group.members[first]} in call "
                    f"{begins[first] - 1:.0f}; make the same calls in every task, and let an error of one of them end "
                    "the program"
                )

    def _take_the_chiefs(self, made: list[_Made], restored: set[int]) -> None:
        """Give variables the chief's values, also those that a task has derived from its own meanwhile."""
        group, arrays = self._group, None
        variables = [one.variable() for one in made]
        digests, gone = np.zeros(len(made), np.int64), np.ones(len(made), np.int64)
        for number, (variable, one) in enumerate(zip(variables, made, strict=True)):
            if variable is None:
                continue
            first, *_ = copies_of(group.strategy, Plain(variable))
            gone[number] = id(first.handle) in restored
            if not gone[number]:  # what replicas count for themselves may differ by now
                counts = variable.synchronization is tf.VariableSynchronization.ON_READ
                digests[number] = one.initial if counts else digests_of(first.numpy())[1]
        sent = digests.view(np.uint8) if group.index == 0 else None
        chiefs = group.broadcast(sent, digests.nbytes).view(np.int64)
        other, gone = group.sum(np.stack([digests != chiefs, gone]).astype(np.int64))
        apart = [variables[number] for number in np.flatnonzero((other > 0) & (gone == 0))]
        plain = named("initial", apart)
        if group.index == 0:
            arrays = {name: copies_of(group.strategy, variable)[0].numpy() for name, variable in plain.items()}
            arrays["replicas"] = np.zeros((group.replicas, 0), np.uint8)
        if plain:
            State(group, plain, {}, []).restore(None if arrays is None else Held(arrays))

    def _run(self, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A step of the program's own, whose variables must be alike before it; those that it makes, as it does so."""
        if self._held or self._in_step:
            return run(*args, **kwargs)
        if self._made:
            with tf.init_scope():  # the step may be being traced
                self.agree_on_new()
        self._in_step = True
        try:
            return run(*args, **kwargs)
        finally:
            self._in_step = False

    def _create(self, create: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        around, self._digests = self._digests, []
        try:
            variable = create(*args, **kwargs)
            if self._digests:
                self._made.append(_Made(weakref.ref(variable), *self._digests[0]))
            return variable
        finally:
            self._digests = around

    def _initial_value(self, initial: Callable[..., Any], **kwargs: Any) -> Any:
        """The function that gives a replica's initial value."""
        of_tensorflow = initial(**kwargs)
        if kwargs["replica_id"] != 0:  # which copies the first one's
            return of_tensorflow

        def own() -> Any:
            in_one = self._group.local == 1 or tf.distribute.in_cross_replica_context()
            shape = kwargs.get("shape")
            fixed = shape is None or tf.TensorShape(shape).is_fully_defined()
            if self._in_step or not (tf.executing_eagerly() and in_one and fixed):
                return of_tensorflow()
            with tf.device(kwargs["device"]):
                value = kwargs["initial_value"]
                value = value() if callable(value) else value
                value = tf.convert_to_tensor(getattr(value, "wrapped_value", value), dtype=kwargs.get("dtype"))
            if not (value.dtype.is_numpy_compatible and value.dtype.size):
                return of_tensorflow()  # strings, which cannot be sent: it says so
            self._digests.append(digests_of(value.numpy()))
            return value

        return own


def digests_of(value: npt.NDArray[Any]) -> tuple[int, int]:
    """Of an array's shape and type, and of what it holds."""
    content = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    return zlib.crc32(f"{value.shape} {value.dtype}".encode()), zlib.crc32(content.data)


_of_process = InitialValues()
watch, held, begin = _of_process.watch, _of_process.held, _of_process.begin
agree, agree_on_new = _of_process.agree, _of_process.agree_on_new
