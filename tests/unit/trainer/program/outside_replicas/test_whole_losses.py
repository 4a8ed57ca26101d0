# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.outside_replicas.whole_losses: losses of tf_keras that a program calls by itself."""

from collections.abc import Iterator

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
tf_keras = pytest.importorskip("tf_keras")
whole_losses = pytest.importorskip("dtjob_trainer.program.outside_replicas.whole_losses")
TARGETS, FOUND = np.array([[0.0], [1.0]], np.float32), np.array([[0.5], [3.0]], np.float32)


@pytest.fixture
def strategy(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    own = tf_keras.losses.Loss._get_reduction
    monkeypatch.setattr(tf_keras.losses.Loss, "_get_reduction", whole_losses.taking_means(own))
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        yield strategy


@pytest.mark.parametrize("reduction", ["auto", "sum_over_batch_size"])
def test_a_loss_outside_of_replicas_is_the_mean_of_its_rows(strategy: object, reduction: str) -> None:
    found = tf_keras.losses.MeanSquaredError(reduction=reduction)(TARGETS, FOUND)
    assert float(found) == pytest.approx(2.125)


def test_a_layer_that_calls_a_loss_is_built_into_a_model(strategy: object) -> None:
    class Endpoint(tf_keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.loss_fn = tf_keras.losses.MeanSquaredError()

        def call(self, targets: object, found: object) -> object:
            self.add_loss(self.loss_fn(targets, found))
            return found

    inputs = [tf_keras.Input((1,)), tf_keras.Input((1,))]
    model = tf_keras.Model(inputs, Endpoint()(*inputs))
    model([TARGETS, FOUND])
    assert float(model.losses[0]) == pytest.approx(2.125)


def test_a_mean_in_a_replica_is_refused_as_before(strategy: "tf.distribute.Strategy") -> None:
    loss = tf_keras.losses.MeanSquaredError()
    with pytest.raises(ValueError, match=r"Reduction\.SUM"):
        strategy.run(lambda: loss(TARGETS, FOUND))
    assert not loss._allow_sum_over_batch_size
