# SPDX-License-Identifier: Apache-2.0
"""A custom loop with two models, two optimizers, Dropout, BatchNormalization and noise, as the tests tell it to."""

import argparse
import importlib
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--data", choices=["arrays", "function", "dataset", "distributed"], default="arrays")
parser.add_argument("--total-steps", type=int, default=60)
parser.add_argument(
    "--plain", action="store_true", help="nothing that depends on how the batch is cut, but clipping and averages"
)
parser.add_argument("--no-dropout", action="store_true", help="tf_keras's has a state that nobody can save")
parser.add_argument("--forget", action="store_true", help="leave an optimizer out of variables")
parser.add_argument("--hold", type=int, help="wait before this epoch's data until the file --gate is there")
parser.add_argument("--gate")
options = parser.parse_args()
keras = importlib.import_module(options.package)
layers = keras.layers
BATCH_SIZE = 48

digits = np.load(Path(__file__).parents[3] / "examples" / "digits.npz")
x = (digits["images"] / 16.0).reshape(-1, 64).astype("float32")[:960]
y = digits["target"][:960]


def shard(context):
    """This shard's examples; waits at a known step, so that a test can act there."""
    while context.epoch == options.hold and not Path(options.gate).exists():
        time.sleep(0.01)
    rows = context.shuffled(len(x))
    return tf.data.Dataset.from_tensor_slices({"image": x[rows], "label": y[rows]})


extra = [] if options.plain else [layers.BatchNormalization()]
extra += [] if options.plain or options.no_dropout else [layers.Dropout(0.3)]
encoder = keras.Sequential([layers.Input((64,)), layers.Dense(32, activation="relu"), *extra, layers.Dense(16)])
classifier = keras.Sequential([layers.Input((16,)), layers.Dense(10)])
clipping: dict[str, float] = {"global_clipnorm": 0.2} if options.plain else {}
adding_up = {"gradient_accumulation_steps": 2} if options.plain and options.package == "keras" else {}
averages = {"use_ema": True, "ema_momentum": 0.5, "ema_overwrite_frequency": 4} if adding_up else {}
slow = keras.optimizers.SGD(0.05, momentum=0.9, **clipping, **averages)
fast = keras.optimizers.Adam(0.005, **adding_up)
slow.build(encoder.trainable_variables)
fast.build(classifier.trainable_variables)
examples = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=tf.VariableAggregation.SUM, name="examples")
seen = keras.metrics.Sum()
noise = importlib.import_module("keras").random.SeedGenerator(7)


def step_fn(batch):
    images, labels = (batch["image"], batch["label"]) if isinstance(batch, dict) else batch
    if not options.plain and options.package == "keras":
        images = images + keras.random.normal(tf.shape(images), stddev=0.01, seed=noise)
    with tf.GradientTape(persistent=True) as tape:
        logits = classifier(encoder(images, training=True), training=True)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.reduce_sum(losses) / BATCH_SIZE
    for optimizer, model in ((slow, encoder), (fast, classifier)):
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    examples.assign_add(tf.shape(labels, out_type=tf.int64)[0])
    seen.update_state(tf.ones_like(labels, tf.float32))
    right = tf.reduce_sum(tf.cast(tf.argmax(logits, axis=-1) == labels, tf.float32)) / BATCH_SIZE
    return {"loss": loss, "accuracy": right}


dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH_SIZE, drop_remainder=True)
data = {
    "arrays": ((x, y), BATCH_SIZE),
    "function": (shard, BATCH_SIZE),
    "dataset": (dataset, None),
    "distributed": (None, None),
}[options.data]
if options.data == "distributed":
    data = (dt.strategy().experimental_distribute_dataset(dataset), None)
variables = {
    "models": [encoder, classifier],
    "optimizers": [slow] if options.forget else [slow, fast],
    "count": [examples, seen],
    "noise": noise,
}
last = dt.train(step_fn, data[0], variables=variables, total_steps=options.total_steps, batch_size=data[1])
assert set(last) == {"loss", "accuracy"}, last
dt.save(encoder, "encoder.keras")
logits = classifier(encoder(x, training=False), training=False)  # in all tasks: tf_keras reads statistics of all
right = float(np.mean(np.argmax(logits, axis=-1) == y))
counted, summed = int(examples.numpy()), int(seen.result())  # in all tasks: a metric's value is the sum of theirs
if dt.is_chief():
    print(f"loss {last['loss']:.6f} accuracy {right:.4f} examples {counted} steps {int(slow.iterations.numpy())}")
    print(f"metric {summed}")
