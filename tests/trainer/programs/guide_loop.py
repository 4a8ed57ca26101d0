# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow's guides do in a custom loop, under the strategy that the runner has made: no fit, no train."""

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

strategy = dt.strategy()
assert strategy is tf.distribute.get_strategy()
replicas, BATCH_SIZE = strategy.num_replicas_in_sync, 24

rows = np.random.default_rng(1).normal(size=(96, 4)).astype("float32")
targets = rows @ np.array([[1.0], [2.0], [-1.0], [0.5]], np.float32)


def plain_fit(steps):
    """The same training with NumPy, on one device: what every strategy must come to."""
    weights = np.zeros((4, 1))
    for step in range(steps):
        at = slice(step * BATCH_SIZE % 96, step * BATCH_SIZE % 96 + BATCH_SIZE)
        weights -= 0.1 * 2 * rows[at].T @ (rows[at] @ weights - targets[at]) / BATCH_SIZE
    return weights


# values that the program makes itself, one for each replica
numbers = strategy.experimental_distribute_values_from_function(
    lambda context: tf.constant([float(context.replica_id_in_sync_group)])
)


@tf.function
def doubled(value):
    return strategy.run(lambda v: 2.0 * v, args=(value,))


assert float(strategy.reduce("SUM", doubled(numbers), axis=None)[0]) == float(sum(range(replicas)) * 2)
assert float(strategy.reduce("MEAN", doubled(numbers), axis=0)) == float(sum(range(replicas)) * 2) / replicas
np.testing.assert_array_equal(strategy.gather(doubled(numbers), axis=0), 2.0 * np.arange(replicas))


def of_worker(context):
    """This worker's part of each batch."""
    size = context.get_per_replica_batch_size(BATCH_SIZE) * replicas // context.num_input_pipelines
    parts = np.arange(96).reshape(-1, context.num_input_pipelines, size)[:, context.input_pipeline_id].ravel()
    return tf.data.Dataset.from_tensor_slices((rows[parts], targets[parts])).batch(size // (replicas // WORKERS))


WORKERS = replicas // len(strategy.experimental_local_results(numbers))
dataset = tf.data.Dataset.from_tensor_slices((rows, targets)).batch(BATCH_SIZE)
datasets = {
    "from function": strategy.distribute_datasets_from_function(of_worker),
    "distributed": strategy.experimental_distribute_dataset(dataset),
}
for name, distributed in datasets.items():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")])
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    seen = keras.metrics.Sum()

    def replica_step(batch, model=model, optimizer=optimizer, seen=seen):
        x, y = batch
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(
                tf.reduce_sum(tf.square(model(x, training=True) - y), axis=-1), global_batch_size=BATCH_SIZE
            )
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        seen.update_state(tf.ones_like(y))
        return loss

    @tf.function
    def step(batch, replica_step=replica_step):
        return strategy.reduce("SUM", strategy.run(replica_step, args=(batch,)), axis=None)

    losses = [float(step(batch)) for _ in range(3) for batch in distributed]
    assert len(losses) == 12, losses
    assert losses[-1] < losses[0] / 4, losses
    np.testing.assert_allclose(model.get_weights()[0], plain_fit(12), rtol=1e-4, atol=1e-6)
    mine = sum(float(part) for part in strategy.experimental_local_results(seen.total.value))
    assert mine * WORKERS == 3 * 96, (name, mine)
    # what each replica computes can be brought together, as for an evaluation
    predicted = strategy.gather(strategy.run(lambda b, m=model: m(b[0]), args=(next(iter(distributed)),)), axis=0)
    np.testing.assert_allclose(predicted, rows[:BATCH_SIZE] @ model.get_weights()[0], rtol=1e-4, atol=1e-5)
print(f"all well with {replicas} replicas of {WORKERS} workers")
