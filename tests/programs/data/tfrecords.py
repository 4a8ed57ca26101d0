# SPDX-License-Identifier: Apache-2.0
"""Images in TFRecord files: written, read with interleave, parsed, augmented by nothing, and trained from."""

import json
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
directory = tempfile.mkdtemp()
rng = np.random.default_rng(9)


def bytes_feature(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def int64_feature(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


files = []
for number in range(4):
    path = os.path.join(directory, "part-%02d.tfrec" % number)
    files.append(path)
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(40):
            image = rng.integers(0, 255, size=(8, 8, 3)).astype("uint8")
            label = int(image[:4].mean() > image[4:].mean())
            feature = {
                "image": bytes_feature(tf.io.encode_png(image).numpy()),
                "target": int64_feature(label),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def decode_image(image):
    image = tf.io.decode_png(image, channels=3)
    image = tf.cast(image, tf.float32) / 255
    return tf.reshape(image, [8, 8, 3])


def read_tfrecord(example):
    description = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "target": tf.io.FixedLenFeature([], tf.int64),
    }
    example = tf.io.parse_single_example(example, description)
    return decode_image(example["image"]), tf.cast(example["target"], tf.int32)


def get_dataset(filenames):
    dataset = tf.data.TFRecordDataset(filenames)
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(40 * len(filenames)))
    dataset = dataset.map(read_tfrecord, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.shuffle(64, seed=2, reshuffle_each_iteration=False)
    dataset = dataset.prefetch(buffer_size=tf.data.AUTOTUNE)
    return dataset.batch(16)


train_dataset, valid_dataset = get_dataset(files[:3]), get_dataset(files[3:])
schedule = keras.optimizers.schedules.ExponentialDecay(0.01, decay_steps=20, decay_rate=0.96, staircase=True)
checkpoint_cb = keras.callbacks.ModelCheckpoint(os.path.join(directory, "model.keras"), save_best_only=True)
early_stopping_cb = keras.callbacks.EarlyStopping(patience=10, restore_best_weights=True)


def make_model():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            keras.layers.Conv2D(6, 3, activation="tanh"),
            keras.layers.Flatten(),
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate=schedule),
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc")],
    )
    return model


strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = make_model()
history = model.fit(
    train_dataset, epochs=3, validation_data=valid_dataset, callbacks=[checkpoint_cb, early_stopping_cb]
)
print("RESULT", json.dumps({"history": history.history}))
