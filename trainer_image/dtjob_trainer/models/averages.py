# SPDX-License-Identifier: Apache-2.0
"""The moving averages that Keras 3's optimizers keep of weights (`use_ema`), under `tf.distribute`.

Keras assigns them in each replica by itself, and decides there whether they become the weights, which fails where
replicas assign together. Here the variables of all replicas are updated at once, by the same formula.
"""

from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import keras3
from dtjob_trainer.frameworks import variables as framework
from dtjob_trainer.models import replicas


def pairs_of(optimizer: Any) -> list[tuple[Any, Any]]:
    """Each variable that `optimizer` trains, which updates variables itself and is built, with its average.

    None where it keeps no averages.
    """
    pairs = keras3.averages_of(optimizer) if optimizer.use_ema else []
    return [(variable, average) for variable, average in pairs if average is not None]


def update(optimizer: Any) -> None:
    """One step of the averages of `optimizer`, after its update; in a replica's step. As Keras's own does.

    The very first step takes the weights as they are. Every `ema_overwrite_frequency` steps the weights are
    overwritten.
    """
    pairs = pairs_of(optimizer)
    if not pairs:
        return
    steps, every = tf.convert_to_tensor(optimizer.iterations), optimizer.ema_overwrite_frequency
    first, momentum = tf.equal(steps, 0), optimizer.ema_momentum
    overwrites = tf.equal((steps + 1) % every, 0) if every else None

    def of_one(average: Any, variable: Any, first: Any, overwrites: Any) -> None:
        variable = framework.of_one_device(variable)
        kept = tf.where(first, tf.zeros([], average.dtype), tf.constant(momentum, average.dtype))
        new = kept * tf.convert_to_tensor(average) + (1 - kept) * tf.convert_to_tensor(variable)
        average.assign(new)
        if overwrites is not None:
            tf.cond(overwrites, lambda: _done(variable.assign(new)), lambda: _done(None))

    count = len(pairs)
    variables, averages = zip(*pairs, strict=True)
    whole = [replicas.value_of(variable) for variable in variables]
    replicas.update(averages, of_one, whole, [first] * count, [overwrites] * count)


def _done(_: Any) -> Any:
    """What both branches of a condition give."""
    return tf.constant(0)
