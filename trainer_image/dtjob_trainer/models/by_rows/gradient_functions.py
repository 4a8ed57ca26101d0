# SPDX-License-Identifier: Apache-2.0
"""What a step takes gradients with: `tf.GradientTape.gradient` and `tf.gradients`."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.impl.api import autograph_artifact

from dtjob_trainer.models.cuts import replaced

Gradient = Callable[..., Any]
"""Takes a target, sources, and gradients of the target if there are any, and whatever else both functions take."""


@contextlib.contextmanager
def heard(hearing: Callable[[Gradient], Gradient]) -> Iterator[None]:
    """While this lasts, both functions are what `hearing` makes of them."""
    of_tapes, plain = tf.GradientTape.gradient, tf.gradients

    @wraps(of_tapes)
    def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
        return hearing(partial(of_tapes, self))(*args, **kwargs)

    @wraps(plain)
    def gradients(ys: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
        return hearing(plain)(ys, xs, *args, **kwargs)

    in_tapes = replaced(tf.GradientTape, gradient=autograph_artifact(gradient))
    with in_tapes, replaced(tf, gradients=autograph_artifact(gradients)):
        yield
