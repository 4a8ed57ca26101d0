# SPDX-License-Identifier: Apache-2.0
"""How a model's metrics are updated where several replicas share a batch, or one and the same variables.

The states of metrics are sums of what replicas have (`placement`), so that each metric counts as on one device.
Most of Keras's own metrics count row by row. Where all that one is given are rows, each replica counts its own.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks, keras3, packages
from dtjob_trainer.placement import kinds, tracker
from dtjob_trainer.placement.kinds import Kind, Mode
from dtjob_trainer.placement.shard import Shard, setting, traced
from dtjob_trainer.steps import padding

_inside: ContextVar[bool] = ContextVar("inside", default=False)
"""Whether this is within the update of a metric that is made of others."""

_OF_ALL_ROWS = ("dice", "tversky", "hinge", "squared_hinge")
"""Functions of the packages that give one number, or whose rows depend on the labels of others."""

Counting = Callable[[Shard, Sequence[Any]], AbstractContextManager[Any]]


class Updates:
    """The updates of one model's metrics."""

    def __init__(self, package: str, *, shared: bool) -> None:
        """`package`: the model's; classes of its own are in modules below it. `shared`: replicas share variables."""
        self._package, self._shared = package, shared

    @contextlib.contextmanager
    def during(self, metrics: Sequence[Any], around: Counting | None) -> Iterator[None]:
        """While this lasts, `metrics` (single ones) count as on one device.

        - around: what is around each update, given the variables, where one replica is in sync; None: nothing.
        """
        with contextlib.ExitStack() as stack:
            for metric in metrics:
                updating = hooks.around(partial(self._update, metric, around))
                stack.enter_context(hooks.during(keras3.METRIC_UPDATED, updating, on=metric))
            yield

    def of_program(self, metrics: Sequence[Any]) -> set[int]:
        """The ids of the variables of those of `metrics` that the program has a part in."""
        return {id(variable) for metric in metrics if not self._is_own(metric) for variable in metric.variables}

    def _update(self, metric: Any, around: Counting | None, own: Any, *args: Any, **kwargs: Any) -> Any:
        shard = traced.get()
        if _inside.get() or shard is None:
            return own(*args, **kwargs)
        with setting(_inside, True):
            if shard.replicas == 1:
                with around(shard, metric.variables) if around is not None else contextlib.nullcontext():
                    return own(*args, **kwargs)
            found, given = tracker.current(), (args, kwargs)
            # None: a step that scales its gradients itself
            with contextlib.nullcontext(found) if found is not None else tracker.tracing(shard, given) as found:
                assert found is not None
                by_rows = not self._shared and self._counts_rows(metric) and _are_rows(given)
                if found.mode is not Mode.STEP or not by_rows:
                    return own(*args, **kwargs)
                with found.within(Mode.LAYER), padding.kept(found.shard, metric.variables):
                    return own(*args, **kwargs)

    def _counts_rows(self, metric: Any) -> bool:
        """Whether the package alone says how `metric` counts, and it counts each row by itself."""
        function = _function_of(metric)
        each = function is None or getattr(function, "__name__", "") not in ("", *_OF_ALL_ROWS)
        return self._is_own(metric) and each and packages.axis_of(metric) == -1

    def _is_own(self, metric: Any) -> bool:
        """Whether the package alone says how `metric` counts."""
        home = next(base for base in type(metric).__mro__ if "update_state" in vars(base))
        function = _function_of(metric)
        named = isinstance(getattr(function, "__module__", None), str) and hasattr(function, "__name__")
        parts = [home] if function is None else [home, function if named else type(function)]
        return all(str(part.__module__).startswith(f"{self._package}.") for part in parts)


def _function_of(metric: Any) -> Any:
    """The function that `metric` takes the mean of, if there is one."""
    function = packages.wrapped_by(metric)
    return getattr(function, "func", function)  # of functools.partial


def _are_rows(given: Any) -> bool:
    """Whether all tensors of `given` are rows of the batch, as many in each."""
    tensors = [each for each in tf.nest.flatten(given, expand_composites=True) if tf.is_tensor(each)]
    places = [kinds.of(each) for each in tensors]
    if not places or any(place is None or place.kind is not Kind.ROWS for place in places):
        return False
    return len({(place.blocks, place.units) for place in places if place is not None}) == 1
