# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on GPUs, and says where its weights are and how far its loss fell.

--fill: the fraction of a GPU's memory that it takes and keeps, as large models do. --deterministic: the same bits at
each run. --until: the file for which it waits at its end.
"""

import argparse
import subprocess
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext

import dtjob_trainer as dt

BATCH, STEPS = 64, 20
"""The examples of a step, and the steps of an epoch."""

parser = argparse.ArgumentParser()
parser.add_argument("--policy", default="float32")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--fill", type=float, default=0.0)
parser.add_argument("--deterministic", action="store_true")
parser.add_argument("--jit", action="store_true")
parser.add_argument("--until", type=Path)
options = parser.parse_args()


class Noted(keras.layers.Layer):
    """Notes whether its step is traced for XLA."""

    by_xla = False

    def call(self, inputs):
        Noted.by_xla |= GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
        return inputs


def filled(fraction):
    """A tensor of this fraction of the GPU's memory, which is taken at once."""
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    megabytes = int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0])
    with tf.device("GPU:0"):
        return tf.zeros([int(megabytes * fraction), 1024, 256])


if options.deterministic:
    tf.config.experimental.enable_op_determinism()
keras.config.set_dtype_policy(options.policy)
chance = np.random.default_rng(0)
classes = chance.integers(0, 10, BATCH * STEPS)
images = chance.standard_normal((len(classes), 16, 16, 3)).astype("float32")
images[..., 0] += classes[:, None, None] / 4
model = keras.Sequential(
    [
        keras.Input((16, 16, 3)),
        keras.layers.Conv2D(32, 3, padding="same", use_bias=False),
        keras.layers.BatchNormalization(),
        keras.layers.ReLU(),
        keras.layers.Conv2D(64, 3, strides=2, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(64, activation="relu"),
        Noted(),
        keras.layers.Dense(10, dtype="float32"),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"], jit_compile=options.jit)
kept = filled(options.fill) if options.fill else None
history = dt.fit(model, images, classes, batch_size=BATCH, epochs=options.epochs, save="model.keras")
if dt.is_chief():
    weight = model.trainable_variables[0].value
    part = dt.strategy().experimental_local_results(weight)[0]
    device = tf.DeviceSpec.from_string(part.device)
    print(f"weights are on {device.job or 'localhost'} {device.device_type}:{device.device_index}")
    print(f"loss fell from {history.history['loss'][0]:.4f} to {history.history['loss'][-1]:.4f}")
    print(f"compiled by XLA: {Noted.by_xla}", flush=True)
while options.until and not options.until.exists():
    time.sleep(0.01)
