# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.steps.padding: what replicas without rows leave as it was."""

import keras
import tensorflow as tf

from dtjob_trainer.placement.shard import Shard
from dtjob_trainer.steps.padding import kept, moving_statistics


class BatchNormalization(keras.layers.Layer):  # type: ignore[misc]
    """A program's own, which keeps nothing."""

    def call(self, inputs: object) -> object:
        return inputs


def shard(examples: int, may_be_empty: bool = True) -> Shard:
    return Shard(2, tf.constant(examples), tf.constant(4), may_be_empty)


def test_statistics_of_a_replicas_own_rows_are_found() -> None:
    layers = keras.layers
    own, renormed = layers.BatchNormalization(), layers.BatchNormalization(renorm=True)
    others = layers.BatchNormalization(synchronized=True), BatchNormalization(), layers.BatchNormalization()
    model = keras.Sequential([keras.Input((2,)), own, renormed, *others[:2], layers.Dense(1)])
    model.never_called = others[2]
    wanted = [own.moving_mean, own.moving_variance, renormed.moving_mean, renormed.moving_variance]
    wanted += [renormed.moving_stddev, renormed.renorm_mean, renormed.renorm_stddev]
    found = moving_statistics(model, shard(0))
    assert {id(v) for v in found} == {id(v) for v in wanted}
    assert moving_statistics(model, shard(1, may_be_empty=False)) == []


def test_only_a_replica_without_rows_takes_back_what_it_has_changed() -> None:
    variable = keras.Variable(1.0)
    for examples, wanted in ((0, 1.0), (3, 2.0)):
        with kept(shard(examples), [variable]):
            variable.assign(2.0)
        assert float(variable.numpy()) == wanted
