# SPDX-License-Identifier: Apache-2.0
"""What the guide on distributed input does: batches, peeking, sharding options, several kinds of elements."""

import json

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
global_batch_size = 16
dataset = tf.data.Dataset.from_tensors(([1.0], [1.0])).repeat(100).batch(global_batch_size)
dist_dataset = strategy.experimental_distribute_dataset(dataset)


@tf.function
def train_step(inputs):
    features, labels = inputs
    return tf.reduce_sum(labels - 0.3 * features)


total = 0.0
iterator = iter(dist_dataset)
for _ in range(6):
    per_replica = strategy.run(train_step, args=(next(iterator),))
    total += float(strategy.reduce("SUM", per_replica, axis=None))

# until the data ends
batches = 0
for _ in dist_dataset:
    batches += 1

# get_next_as_optional in a tf.function
ds = tf.data.Dataset.range(64).map(lambda n: tf.cast(n, tf.float32)).batch(global_batch_size)
dist = strategy.experimental_distribute_dataset(ds)


@tf.function
def train_fn(distributed_iterator):
    found = tf.constant(0.0)
    for _ in tf.range(100):
        optional_data = distributed_iterator.get_next_as_optional()
        if not optional_data.has_value():
            break
        per_replica = strategy.run(lambda x: tf.reduce_sum(x), args=(optional_data.get_value(),))
        found += strategy.reduce("SUM", per_replica, axis=None)
    return found


optional_sum = float(train_fn(iter(dist)))

# dicts, sharded by data
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
table = {"a": np.arange(32, dtype="float32"), "b": np.arange(32, dtype="float32") * 2}
named = tf.data.Dataset.from_tensor_slices(table).batch(8).with_options(options)
named_total = 0.0
for batch in strategy.experimental_distribute_dataset(named):
    summed = strategy.run(lambda row: tf.reduce_sum(row["a"] * row["b"]), args=(batch,))
    named_total += float(strategy.reduce("SUM", summed, axis=None))


def dataset_fn(input_context):
    batch_size = input_context.get_per_replica_batch_size(global_batch_size)
    d = tf.data.Dataset.from_tensors([[1.0]]).repeat(64).batch(batch_size)
    d = d.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    return d.prefetch(2)


functional = 0.0
for batch in strategy.distribute_datasets_from_function(dataset_fn):
    functional += float(strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(batch,)), axis=None))

# the type spec of what an iterator gives, and values that replicas put together
spec = dist_dataset.element_spec


@tf.function(input_signature=[spec])
def with_signature(inputs):
    return strategy.reduce("MEAN", strategy.run(lambda pair: tf.reduce_mean(pair[0]), args=(inputs,)), axis=None)


mean = float(with_signature(next(iter(dist_dataset))))
gathered = strategy.gather(next(iter(dist)), axis=0).numpy().tolist()
print(
    "RESULT",
    json.dumps(
        {
            "total": total,
            "batches": batches,
            "optional": optional_sum,
            "named": named_total,
            "functional": functional,
            "mean": mean,
            "gathered": gathered,
        }
    ),
)
