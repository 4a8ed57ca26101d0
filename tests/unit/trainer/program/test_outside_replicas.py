# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.outside_replicas: what a program calls outside of strategy.run."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from dtjob_trainer.frameworks import hooks, variables

tf = pytest.importorskip("tensorflow")
tf_keras = pytest.importorskip("tf_keras")
outside_replicas = pytest.importorskip("dtjob_trainer.program.outside_replicas")
TARGETS, FOUND = np.array([[0.0], [1.0]], np.float32), np.array([[0.5], [3.0]], np.float32)


class Doubled(tf.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.factor = tf.Variable(2.0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])  # type: ignore[untyped-decorator]
    def __call__(self, x: object) -> object:
        return self.factor * x


def test_a_model_loaded_for_all_replicas_is_called_in_replicas_and_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorflow.python.saved_model import load

    monkeypatch.setattr(load._WrapperFunction, "_call_flat", load._WrapperFunction._call_flat)
    outside_replicas.call_outside_of_replicas()
    tf.saved_model.save(Doubled(), str(tmp_path))
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        model = tf.saved_model.load(str(tmp_path))
        model.factor.assign(3.0)
        assert float(model(tf.constant(4.0))) == 12
    assert float(strategy.run(model, args=(tf.constant(5.0),))) == 15


@pytest.mark.parametrize("value", [1.5, 2, np.float32(0.25), np.arange(3), tf.constant([1.0, 2.0])])
def test_a_sum_counts_a_plain_value_for_each_replica(value: object) -> None:
    def reduce(*_: object) -> None:
        raise ValueError("A non-DistributedValues value cannot be reduced")

    strategy = SimpleNamespace(_num_replicas_in_sync=3)
    found = outside_replicas.counted_sum(reduce, strategy, tf.distribute.ReduceOp.SUM, value)
    np.testing.assert_array_equal(found, np.asarray(value) * 3)
    assert found.dtype == tf.convert_to_tensor(value).dtype


@pytest.mark.parametrize(
    ("reduce_op", "value", "replicas"),
    [("MEAN", 1.0, 2), ("SUM", tf.distribute.DistributedValues(), 2), ("SUM", [1.0, 2.0], 2), ("SUM", "text", 1)],
)
def test_the_strategy_gets_everything_else(reduce_op: str, value: object, replicas: int) -> None:
    strategy = SimpleNamespace(_num_replicas_in_sync=replicas)
    found = outside_replicas.counted_sum(lambda *given: given, strategy, tf.distribute.ReduceOp(reduce_op), value)
    assert found == (strategy, tf.distribute.ReduceOp(reduce_op), value)


@pytest.fixture
def strategy(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    own = tf_keras.losses.Loss._get_reduction
    monkeypatch.setattr(tf_keras.losses.Loss, "_get_reduction", hooks.around(outside_replicas.reduction_of)(own))
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


def test_float_and_int_read_a_variable_of_several_replicas() -> None:
    outside_replicas.read_variables()
    try:
        with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
            level, count = tf.Variable(7.5), tf.Variable(3, trainable=False)
        assert (float(level), int(count), int(level)) == (7.5, 3, 7)
    finally:
        for hook in variables.NUMBERS.values():
            hooks.undo(hook)
