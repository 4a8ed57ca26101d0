# SPDX-License-Identifier: Apache-2.0
"""ParameterServerStrategy with Model.fit, then with a ClusterCoordinator and a loop of its own."""

import json
import os

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(8)
clustered = "ps" in json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
if clustered:
    cluster_resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if cluster_resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(
            cluster_resolver.cluster_spec(),
            job_name=cluster_resolver.task_type,
            task_index=cluster_resolver.task_id,
            protocol=cluster_resolver.rpc_layer or "grpc",
            start=True,
        )
        server.join()
    variable_partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(
        min_shard_bytes=(256 << 10), max_shards=1
    )
    strategy = tf.distribute.ParameterServerStrategy(cluster_resolver, variable_partitioner=variable_partitioner)
else:
    strategy = tf.distribute.get_strategy()

global_batch_size = 64
x = tf.random.uniform((10, 10), seed=1)
y = tf.random.uniform((10, 1), seed=2)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(10, seed=3, reshuffle_each_iteration=False).repeat()
dataset = dataset.batch(global_batch_size).prefetch(2)
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(), loss="mse", steps_per_execution=5)
history = model.fit(dataset, epochs=3, steps_per_epoch=10)

feature_vocab = ["avenger", "ironman", "batman", "hulk", "spiderman", "kingkong", "wonder_woman"]
label_vocab = ["yes", "no"]
with strategy.scope():
    feature_lookup_layer = keras.layers.StringLookup(vocabulary=feature_vocab, mask_token=None)
    label_lookup_layer = keras.layers.StringLookup(vocabulary=label_vocab, num_oov_indices=0, mask_token=None)


def feature_and_label_gen(num_examples=200):
    rng = np.random.default_rng(3)
    examples = {"features": [], "label": []}
    for _ in range(num_examples):
        features = list(rng.choice(feature_vocab, 3))
        examples["features"].append(features)
        examples["label"].append(["yes"] if "avenger" in features else ["no"])
    return examples


examples = feature_and_label_gen()


def dataset_fn(context):
    raw_dataset = tf.data.Dataset.from_tensor_slices(examples)
    return (
        raw_dataset.map(
            lambda x: (
                {"features": feature_lookup_layer(x["features"])},
                label_lookup_layer(x["label"]),
            )
        )
        .shuffle(200, seed=1, reshuffle_each_iteration=False)
        .shard(context.num_input_pipelines, context.input_pipeline_id)
        .batch(context.get_per_replica_batch_size(32))
        .repeat()
    )


with strategy.scope():
    model_input = keras.Input(shape=(3,), dtype="int64", name="model_input")
    emb_layer = keras.layers.Embedding(input_dim=len(feature_lookup_layer.get_vocabulary()), output_dim=16)
    emb_output = keras.layers.GlobalAveragePooling1D()(emb_layer(model_input))
    dense_output = keras.layers.Dense(units=1, activation="sigmoid")(emb_output)
    model = keras.Model({"features": model_input}, dense_output)
    optimizer = keras.optimizers.RMSprop(learning_rate=0.1)
    accuracy = keras.metrics.Accuracy()


@tf.function
def step_fn(iterator):
    def replica_fn(batch_data, labels):
        with tf.GradientTape() as tape:
            pred = model(batch_data, training=True)
            per_example_loss = keras.losses.BinaryCrossentropy(reduction="none")(labels, pred)
            loss = tf.nn.compute_average_loss(per_example_loss)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        actual_pred = tf.cast(tf.greater(pred, 0.5), tf.int64)
        accuracy.update_state(labels, actual_pred)
        return loss

    batch_data, labels = next(iterator)
    losses = strategy.run(replica_fn, args=(batch_data, labels))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


num_epochs, steps_per_epoch = 4, 5
accuracies = []
if clustered:
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    @tf.function
    def per_worker_dataset_fn():
        return strategy.distribute_datasets_from_function(dataset_fn)

    per_worker_dataset = coordinator.create_per_worker_dataset(per_worker_dataset_fn)
    per_worker_iterator = iter(per_worker_dataset)
    for i in range(num_epochs):
        accuracy.reset_state()
        for _ in range(steps_per_epoch):
            coordinator.schedule(step_fn, args=(per_worker_iterator,))
        coordinator.join()
        accuracies.append(float(accuracy.result().numpy()))
        print("Finished epoch %d, accuracy is %f." % (i, accuracies[-1]))
    loss = coordinator.schedule(step_fn, args=(per_worker_iterator,))
    print("Final loss is %f" % loss.fetch())
else:
    iterator = iter(strategy.distribute_datasets_from_function(dataset_fn))
    for i in range(num_epochs):
        accuracy.reset_state()
        for _ in range(steps_per_epoch):
            loss = step_fn(iterator)
        accuracies.append(float(accuracy.result().numpy()))
print("RESULT", json.dumps({"loss": history.history["loss"], "accuracy": accuracies}))
