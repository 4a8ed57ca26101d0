# SPDX-License-Identifier: Apache-2.0
"""Input that is larger than memory: TFRecord files, made on the spot, of which each task reads its share, bit by bit.

The images are gratings in eight directions under noise. Each task makes the files that are not yet on its own disk.
"""

import argparse
import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

SIDE, CLASSES = 64, 8

parser = argparse.ArgumentParser()
parser.add_argument("--megabytes", type=int, default=128, help="how much data to make and read")
parser.add_argument("--files", type=int, default=16)
parser.add_argument("--directory", type=Path, default=Path("/tmp/dtjob-big-input"))
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=256)
options = parser.parse_args()


def examples_in(file):
    """How many examples a file holds: no two files as many."""
    return options.megabytes * 2**20 // (SIDE * SIDE) // options.files + 7 * file


def path_of(file):
    """Where a file is; the name tells all that its content depends on."""
    return options.directory / f"{examples_in(file)}-{file:05}.tfrecord"


def make(file):
    """Write a file, in one piece for whoever looks: other tasks may make the same one on the same disk."""
    random = np.random.default_rng(file)
    rows, columns = np.mgrid[:SIDE, :SIDE] / SIDE
    temporary = path_of(file).with_suffix(f".{os.getpid()}")
    with tf.io.TFRecordWriter(str(temporary)) as writer:
        for label in random.integers(CLASSES, size=examples_in(file)):
            angle, phase = np.pi * label / CLASSES, random.uniform(0, 2 * np.pi)
            waves = np.sin(40 * (columns * np.cos(angle) + rows * np.sin(angle)) + phase)
            image = 127 + 60 * waves + random.normal(scale=40, size=waves.shape)
            writer.write(bytes([label]) + image.clip(0, 255).astype(np.uint8).tobytes())
    temporary.rename(path_of(file))


def reader(files):
    """The data function of these files."""
    paths = tf.constant([str(path_of(file)) for file in files])
    counts = [examples_in(file) for file in files]

    def examples(context):
        # rows of (file, first example, examples): this task's share of the epoch, in the order in which to read it
        pieces = tf.data.Dataset.from_tensor_slices(context.files(counts))
        records = pieces.flat_map(lambda p: tf.data.TFRecordDataset(paths[p[0]]).skip(p[1]).take(p[2]))
        return records.map(decode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

    return examples


def decode(record):
    pixels = tf.io.decode_raw(record, tf.uint8)
    image = tf.reshape(tf.cast(pixels[1:], tf.float32), (SIDE, SIDE, 1)) / 255 - 0.5
    return tf.ensure_shape(image, (SIDE, SIDE, 1)), tf.cast(pixels[0], tf.int64)


options.directory.mkdir(parents=True, exist_ok=True)
for turn in range(options.files + 1):  # the last file is held out
    file = (turn + os.getpid()) % (options.files + 1)  # tasks that share a disk begin at different ones
    if not path_of(file).exists():
        make(file)

model = keras.Sequential([
    keras.Input((SIDE, SIDE, 1)),
    keras.layers.Conv2D(16, 9, strides=4, activation="relu"),
    keras.layers.Conv2D(32, 5, strides=2, activation="relu"),
    keras.layers.GlobalMaxPooling2D(),
    keras.layers.Dense(CLASSES, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = dt.fit(model, reader(range(options.files)), batch_size=options.batch_size, epochs=options.epochs,
                 validation_data=reader([options.files]), save="model.keras")
if dt.is_chief():
    print(f"held-out accuracy {history.history['val_accuracy'][-1]:.4f}")
