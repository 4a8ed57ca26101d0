# SPDX-License-Identifier: Apache-2.0
"""How a model's metrics are updated where several replicas share a batch, or one and the same variables.

Keras's own metrics count rows: their states are sums, and the replicas' add up to one device's. Whether a program's own
do, nobody has said: they are held against made-up rows, all at once and in two parts, and a metric that does not add up
is updated on every replica with all rows of the global batch, as on one device. Where its variables declare another
aggregation than Keras's default, sum, that is taken for what the program wants.
"""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.models import additivity, global_rows
from dtjob_trainer.models.by_rows import scalars
from dtjob_trainer.models.cuts import Cut, setting
from dtjob_trainer.models.instances import overridden

counting: ContextVar[Cut | None] = ContextVar("counting", default=None)
"""The cut of the replica whose step is being traced."""
_inside: ContextVar[bool] = ContextVar("inside", default=False)
"""Whether this is within the update of a metric that is made of others."""

Counting = Callable[[Cut, Sequence[Any]], AbstractContextManager[Any]]


class Updates:
    """The updates of one model's metrics."""

    def __init__(self, package: str) -> None:
        """`package`: the model's; classes of its own are in modules below it."""
        self._package = package
        self._whole: list[tuple[Any, bool]] = []
        """Metrics that a program has made, and whether each is updated with all rows of the global batch."""
        self._lock = threading.Lock()

    def any_of_program(self, metrics: Sequence[Any]) -> bool:
        """Whether the program has a part in how one of `metrics` counts."""
        return any(map(self._may_not_add, metrics))

    def whole_variables(self) -> set[int]:
        """The ids of variables that every replica changes as one device would."""
        return {id(variable) for metric, whole in self._whole if whole for variable in metric.variables}

    @contextlib.contextmanager
    def during(self, metrics: Sequence[Any], of_own_step: Counting | None) -> Iterator[None]:
        """While this lasts, `metrics` (single ones) are updated as above.

        - of_own_step: what is around each update of a step of the model's own, given the variables; None: nothing.
        """
        with contextlib.ExitStack() as stack:
            for metric in metrics:
                if of_own_step is not None or self._may_not_add(metric) or self._is_mean(metric):
                    update = partial(self._update, metric, metric.update_state, of_own_step)
                    stack.enter_context(overridden(metric, update_state=update))
                    if not isinstance(metric, keras.metrics.Metric) and not hasattr(metric, "_fn"):
                        self._is_whole(metric, None, (), {})  # known without arguments, and before states are restored
            yield

    def _update(self, metric: Any, own: Any, around: Counting | None, *args: Any, **kwargs: Any) -> Any:
        if _inside.get():
            return own(*args, **kwargs)
        whole, cut = self._is_whole(metric, own, args, kwargs), counting.get()
        if cut is None:
            return own(*args, **kwargs)
        with setting(_inside, True):
            if whole:
                if cut.replicas > 1:
                    args, kwargs = global_rows.of((args, kwargs), cut)
                with setting(counting, None):  # nothing here is this replica's alone
                    return own(*args, **kwargs)
            if cut.replicas > 1 and self._is_mean(metric) and _is_one_number(args, kwargs):
                args = (scalars.reported(args[0], cut),)
                # for the batch, and not one for each row: replicas share that one count
                kwargs = {"sample_weight": tf.cast(cut.examples, tf.float32) / tf.cast(cut.total, tf.float32)}
            with around(cut, metric.variables) if around is not None else contextlib.nullcontext():
                return own(*args, **kwargs)

    def _is_mean(self, metric: Any) -> bool:
        """Whether it is one of the package's own that take the values themselves."""
        kind = _home(type(metric), "update_state")
        is_mean = kind.__name__ in ("Mean", "Reduce") and any(base.__name__ == "Mean" for base in type(metric).__mro__)
        return is_mean and self._is_own(kind)

    def _may_not_add(self, metric: Any) -> bool:
        """Whether the program has a part in how `metric` counts."""
        if not self._is_own(_home(type(metric), "update_state")):
            return True
        function = getattr(metric, "_fn", None)
        function = getattr(function, "func", function)  # of functools.partial
        return function is not None and not self._is_own(function if callable_has_module(function) else type(function))

    def _is_own(self, part: Any) -> bool:
        return str(part.__module__).startswith(f"{self._package}.")

    def _is_whole(self, metric: Any, own: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether `metric` must see all rows of the global batch; found out at its first update."""
        with self._lock:
            for known, whole in self._whole:
                if known is metric:
                    return whole
            whole = self._may_not_add(metric) and _declares_sums(metric)
            whole = whole and not additivity.adds(metric, own, args, kwargs)
            self._whole.append((metric, whole))
            if whole:
                for variable in metric.variables:
                    _share(variable)
            if whole and tf.distribute.get_strategy().num_replicas_in_sync > 1:
                warnings.warn_explicit(
                    "its state is not known to add up over examples, so that every replica updates it with all rows of "
                    "the global batch; to spare that, let update_state() add sums over examples alone (Keras 3)",
                    UserWarning,
                    f"metric {metric.name}",
                    1,
                )
            return whole


def _is_one_number(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return len(args) == 1 and not kwargs and tf.convert_to_tensor(args[0]).shape.rank == 0


def callable_has_module(function: Any) -> bool:
    """Whether it is a function, which says itself which module it is of."""
    return isinstance(getattr(function, "__module__", None), str) and hasattr(function, "__name__")


def _home(kind: type, name: str) -> type:
    """The class that `kind` has its method of this name from."""
    return next(base for base in kind.__mro__ if name in vars(base))


def _declares_sums(metric: Any) -> bool:
    """Whether all variables have the aggregation that Keras gives them where a program says nothing."""
    names = [getattr(v.aggregation, "name", v.aggregation) for v in metric.variables]
    return all(str(name).lower() == "sum" for name in names)


def _share(variable: Any) -> None:
    """Have a metric's variable, which all replicas change alike, be what the first of them has."""
    value = getattr(variable, "value", variable)
    value = variable if callable(value) else value  # tf.Variable has a method of this name
    if value is not variable:
        variable._aggregation = "only_first_replica"
    for each in (value, *getattr(value, "_values", ())):
        if hasattr(each, "_aggregation"):
            each._aggregation = tf.VariableAggregation.ONLY_FIRST_REPLICA
