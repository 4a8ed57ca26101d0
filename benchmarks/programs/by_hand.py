# SPDX-License-Identifier: Apache-2.0
"""The same training as a hand-written loop after TensorFlow's guide to custom loops with MultiWorkerMirrored.

by_hand.py FILE EPOCHS [CHECKPOINTS EVERY]: writes the seconds of each epoch, as JSON, to FILE. With CHECKPOINTS it
saves there every EVERY steps, goes on from the last one, and appends "STEP TIME" to FILE at every step instead.
"""

import json
import os
import sys
import time
from pathlib import Path

import keras
import tensorflow as tf
from digits_model import BATCH, data, model

file, epochs = Path(sys.argv[1]), int(sys.argv[2])
checkpoints, every = (sys.argv[3], int(sys.argv[4])) if len(sys.argv) > 3 else (None, 0)
task = json.loads(os.environ["TF_CONFIG"])["task"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
x, y = data()
steps = len(x) // BATCH


def batches(context):
    mine = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(len(x), seed=0)
    # endless, as in the guide: of an end TensorFlow would have all tasks agree at every step
    mine = mine.batch(BATCH, drop_remainder=True).repeat()
    size = BATCH // context.num_input_pipelines
    low = context.input_pipeline_id * size
    return mine.map(lambda a, b: (a[low : low + size], b[low : low + size])).prefetch(2)


with strategy.scope():
    network = model()
    optimizer = keras.optimizers.Adam()
    optimizer.build(network.trainable_variables)
    accuracy, mean = keras.metrics.SparseCategoricalAccuracy(), keras.metrics.Mean()
    per_example = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
dataset = strategy.distribute_datasets_from_function(batches)


@tf.function
def train_step(iterator):
    def replica(images, classes):
        with tf.GradientTape() as tape:
            answers = network(images, training=True)
            value = tf.reduce_sum(per_example(classes, answers)) / BATCH
        gradients = tape.gradient(value, network.trainable_variables)
        optimizer.apply_gradients(zip(gradients, network.trainable_variables, strict=True))
        accuracy.update_state(classes, answers)
        mean.update_state(value)
        return value

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica, args=next(iterator)), axis=None)


step = tf.Variable(0, dtype=tf.int64)
if checkpoints:
    variables = [v.value for v in (*network.variables, *optimizer.variables)]
    whole = tf.train.Checkpoint(step=step, variables=variables)
    # every task saves, the others where nobody looks, as TensorFlow's guide has it
    place = checkpoints if task["type"] == "chief" else f"{checkpoints}-{task['type']}-{task['index']}"
    manager = tf.train.CheckpointManager(whole, place, max_to_keep=2)
    latest = tf.train.latest_checkpoint(checkpoints)
    if latest:
        whole.restore(latest)
seconds, iterator = [], iter(dataset)
for _epoch in range(int(step.numpy()) // steps, epochs):
    began = time.perf_counter()
    for _ in range(steps - int(step.numpy()) % steps):  # fewer in an epoch that goes on after a restart
        value = train_step(iterator)
        if checkpoints:
            step.assign_add(1)
            value.numpy()
            if task["type"] == "chief":
                with file.open("a") as lines:
                    lines.write(f"{step.numpy()} {time.time()}\n")
            if step.numpy() % every == 0:
                manager.save()
    value.numpy()
    seconds.append(time.perf_counter() - began)
if task["type"] == "chief" and not checkpoints:
    file.write_text(json.dumps({"steps": steps, "seconds": seconds}))
os._exit(0)  # the shutdown barrier is no part of the training
