# SPDX-License-Identifier: Apache-2.0
"""The last rows of arrays, held out of training: `validation_split` of `fit`."""

import math
from typing import Any

import keras
import numpy as np

from dtjob_trainer.data import sources
from dtjob_trainer.data.sharding import common_length
from dtjob_trainer.data.sliced import Sliced
from dtjob_trainer.data.tf_keras_sequence import is_sequence
from dtjob_trainer.errors import DataError

Arrays = tuple[Any, Any, Any]
"""x, y and sample weights."""


def check(fraction: Any) -> None:
    """Raise DataError for what is no fraction of the examples."""
    if isinstance(fraction, str) or not 0 <= fraction < 1:
        raise DataError(f"validation_split={fraction!r} must be a fraction of the examples: 0.2 for the last fifth")


def split(x: Any, y: Any, sample_weight: Any, fraction: float) -> tuple[Arrays, Arrays]:
    """What to train on, and the last `fraction` of the examples to validate on, in the order in which they were given.

    Raises DataError for what has no rows to be told apart, and where one of both would have none.
    """
    if sources.is_batched(x) or is_sequence(x) or callable(x):
        kind = sources.name_of(x) if sources.is_batched(x) else "Sequence" if is_sequence(x) else "data function"
        raise DataError(
            f"validation_split: it takes the last rows of arrays, and nobody knows those of a {kind}; give "
            "validation_data, as take(n) of a Dataset beside skip(n) for x"
        )
    arrays = sources.as_arrays(x, y, sample_weight, "x")
    n = common_length([leaf for leaf in keras.tree.flatten(arrays) if leaf is not None], "x")
    at = math.floor(n * (1.0 - fraction))
    if at in (0, n):
        raise DataError(
            f"validation_split={fraction}: of {n} examples it leaves none to {'train' if at == 0 else 'validate'} on; "
            "give more of them, or another fraction"
        )

    def part(begin: int, end: int) -> Arrays:
        def rows(leaf: Any) -> Any:
            if leaf is None:
                return None
            return leaf.rows(np.arange(begin, end)) if isinstance(leaf, Sliced) else leaf[begin:end]

        cut = keras.tree.map_structure(rows, arrays)
        return cut[0], cut[1], cut[2]

    return part(0, at), part(at, n)
