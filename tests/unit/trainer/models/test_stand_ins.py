# SPDX-License-Identifier: Apache-2.0
"""What replicas without rows leave as it was."""

import keras
import tensorflow as tf

from dtjob_trainer.models.stand_ins import kept, moving_statistics
from dtjob_trainer.placement.cuts import Cut


class BatchNormalization(keras.layers.Layer):  # type: ignore[misc]
    """A program's own, which keeps nothing."""

    def call(self, inputs: object) -> object:
        return inputs


def cut(examples: int, may_be_empty: bool = True) -> Cut:
    return Cut(2, tf.constant(examples), tf.constant(4), may_be_empty)


def test_statistics_of_a_replicas_own_rows_are_found() -> None:
    layers = keras.layers
    own, renormed = layers.BatchNormalization(), layers.BatchNormalization(renorm=True)
    others = layers.BatchNormalization(synchronized=True), BatchNormalization(), layers.BatchNormalization()
    model = keras.Sequential([keras.Input((2,)), own, renormed, *others[:2], layers.Dense(1)])
    model.never_called = others[2]
    wanted = [own.moving_mean, own.moving_variance, renormed.moving_mean, renormed.moving_variance]
    wanted += [renormed.moving_stddev, renormed.renorm_mean, renormed.renorm_stddev]
    found = moving_statistics(model, cut(0))
    assert {id(v) for v in found} == {id(v) for v in wanted}
    assert moving_statistics(model, cut(1, may_be_empty=False)) == []


def test_only_a_replica_without_rows_takes_back_what_it_has_changed() -> None:
    variable = keras.Variable(1.0)
    for examples, wanted in ((0, 1.0), (3, 2.0)):
        with kept(cut(examples), [variable]):
            variable.assign(2.0)
        assert float(variable.numpy()) == wanted
