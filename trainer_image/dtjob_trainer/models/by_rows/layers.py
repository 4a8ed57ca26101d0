# SPDX-License-Identifier: Apache-2.0
"""What layers make of a batch, noted while a replica's step is traced: parts of the step begin there."""

import contextlib
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import tensorflow as tf
from tensorflow.python.autograph.impl.api import autograph_artifact

from dtjob_trainer.models.by_rows import scalars
from dtjob_trainer.models.cuts import replaced


@contextlib.contextmanager
def noted(base: type) -> Iterator[None]:
    """While this lasts, the outputs of layers, whose base class is `base`, are noted as rows of the batch.

    A layer whose output has more open dimensions than what it was given may have held rows against each other.
    """
    with replaced(base, __call__=_noting(base.__call__)):
        yield


def _noting(own: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        outputs, traced = own(self, *args, **kwargs), scalars.current()
        if traced is not None:
            most = max(map(_open, tf.nest.flatten((args, kwargs))), default=0)
            dense = [each for each in tf.nest.flatten(outputs) if _open(each) <= most]
            scalars.note_rows(traced, dense)
        return outputs

    found: Callable[..., Any] = autograph_artifact(call)
    return found


def _open(value: Any) -> int:
    """How many dimensions of `value`, if it is a tensor, are open."""
    shape = getattr(value, "shape", None)
    return sum(size is None for size in shape) if isinstance(shape, tf.TensorShape) and shape.rank else 0
