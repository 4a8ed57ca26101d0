# SPDX-License-Identifier: Apache-2.0
"""A `train_step` of the model's own that changes gradients before it applies them: clips them, or leaves some out.

On one device it does that with the gradients of the whole batch. So if a step has anything else applied than what its
tape gave, its tape gives the sums over the replicas. What it makes of them is then the same on every replica.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.models.by_rows import gradient_functions
from dtjob_trainer.models.cuts import Cut, setting, weighed
from dtjob_trainer.models.gradients import indexed_slices
from dtjob_trainer.models.instances import overridden
from dtjob_trainer.models.optimizers import outermost

_acting: ContextVar[tuple[Any, Cut] | None] = ContextVar("acting", default=None)
"""The graph of the replica's step that is being traced, and its cut, where tapes give sums."""


class Watch:
    """Finds out, while a step is traced that is not run, whether it changes gradients."""

    def __init__(self) -> None:
        self.changes = False
        """Whether something was applied that no tape gave."""
        self._given: dict[int, Any] = {}

    @contextlib.contextmanager
    def tapes(self) -> Iterator[None]:
        """While this lasts, note what tapes give."""

        def noting(own: gradient_functions.Gradient) -> gradient_functions.Gradient:
            def gradient(*args: Any, **kwargs: Any) -> Any:
                found = own(*args, **kwargs)
                self._given.update({id(each): each for each in tf.nest.flatten(found)})
                return found

            return gradient

        with gradient_functions.heard(noting):
            yield
        self._given.clear()

    def see(self, gradients: Sequence[Any]) -> None:
        """Take in what is applied."""
        self.changes |= any(each is not None and id(each) not in self._given for each in gradients)


@contextlib.contextmanager
def applied_by(optimizers: Sequence[Any], watch: Watch) -> Iterator[None]:
    """While this lasts, have `watch` see what `optimizers` (Keras 3's) apply by a method of their class."""

    def seeing(optimizer: Any) -> Any:
        def apply(grads: Any, *args: Any, **kwargs: Any) -> Any:
            watch.see(grads)
            return type(optimizer).apply(optimizer, grads, *args, **kwargs)

        return apply

    with contextlib.ExitStack() as stack:
        for optimizer in outermost(optimizers):
            stack.enter_context(overridden(optimizer, apply=seeing(optimizer)))
        yield


def summed() -> contextlib.AbstractContextManager[None]:
    """While this lasts, tapes give sums in steps that are `acting`."""
    return gradient_functions.heard(_summing)


def _summing(own: gradient_functions.Gradient) -> gradient_functions.Gradient:
    def gradient(target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        found, acting = own(target, sources, *args, **kwargs), _acting.get()
        # replicas cannot meet within a loop
        if acting is None or acting[0] is not tf.compat.v1.get_default_graph():
            return found
        return _of_all(acting[1], sources, found)

    return gradient


def acting(cut: Cut) -> contextlib.AbstractContextManager[None]:
    """While this lasts, have the tapes of this replica's step give sums."""
    return setting(_acting, (tf.compat.v1.get_default_graph(), cut))


def _of_all(cut: Cut, sources: Any, gradients: Any) -> Any:
    """One device's gradients of the variables among `sources`."""
    found = tf.nest.flatten(gradients)
    pairs = enumerate(zip(tf.nest.flatten(sources), found, strict=True))
    places = [place for place, (source, gradient) in pairs if gradient is not None and _is_summed(source)]
    if not places:
        return gradients
    context = tf.distribute.get_replica_context()
    mine = weighed(cut, [found[place] for place in places])
    totals = indexed_slices.summed(mine, lambda parts: list(context.all_reduce(tf.distribute.ReduceOp.SUM, parts)))
    for place, total in zip(places, totals, strict=True):
        found[place] = indexed_slices.known_to_all(total)
    return tf.nest.pack_sequence_as(gradients, found)


def _is_summed(source: Any) -> bool:
    is_variable = isinstance(source, keras.Variable | tf.Variable)
    return is_variable and not getattr(source, "overwrite_with_gradient", False)
