"""Replicas that have no rows in a step: each computes one all the same, at weight 0, and what that changes is undone.

Losses and gradients weigh by rows. What layers change as they are called does not: moving statistics, and metrics that
a layer updates itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.models.losses import Cut

_LAYER = "BatchNormalization"


@contextlib.contextmanager
def kept(cut: Cut, variables: Sequence[Any], but: Callable[[], Collection[int]] = tuple) -> Iterator[None]:
    """While this lasts, a replica whose row only stands in leaves `variables` (Keras 3's) as they were.

    - but: ids of those that all replicas update together; asked at the end, as of some it is known only then.
    """
    if not cut.may_be_empty:
        yield
        return
    before = [tf.identity(v.value) for v in variables]
    yield
    others = but()
    for variable, value in zip(variables, before, strict=True):
        if id(variable) not in others:
            variable.assign(tf.where(cut.examples > 0, variable.value, value))


def moving_statistics(model: Any) -> list[Any]:
    """The variables of `model`, of either package, that its BatchNormalization makes of the batches that it sees."""
    layers = [layer for layer in model._flatten_layers() if any(k.__name__ == _LAYER for k in type(layer).__mro__)]
    found = [v for layer in layers for v in (layer.moving_mean, layer.moving_variance) if v is not None]
    return list({id(v): v for v in found}.values())
