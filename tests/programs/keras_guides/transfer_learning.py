# SPDX-License-Identifier: Apache-2.0
"""A base that is frozen, a new head, then fine-tuning of all of it with a small learning rate."""

import json

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(11)
rng = np.random.default_rng(1)
x = rng.integers(0, 255, size=(240, 24, 24, 3)).astype("float32")
y = (x[:, :12].mean(axis=(1, 2, 3)) > x[:, 12:].mean(axis=(1, 2, 3))).astype("float32")
train_ds = tf.data.Dataset.from_tensor_slices((x[:160], y[:160]))
validation_ds = tf.data.Dataset.from_tensor_slices((x[160:200], y[160:200]))
test_ds = tf.data.Dataset.from_tensor_slices((x[200:], y[200:]))
resize_fn = keras.layers.Resizing(16, 16)
train_ds = train_ds.map(lambda x, y: (resize_fn(x), y))
validation_ds = validation_ds.map(lambda x, y: (resize_fn(x), y))
test_ds = test_ds.map(lambda x, y: (resize_fn(x), y))
batch_size = 32
train_ds = train_ds.batch(batch_size).prefetch(tf.data.AUTOTUNE).cache()
validation_ds = validation_ds.batch(batch_size).prefetch(tf.data.AUTOTUNE).cache()
test_ds = test_ds.batch(batch_size).prefetch(tf.data.AUTOTUNE).cache()

base_inputs = keras.Input((16, 16, 3))
base = layers.Conv2D(8, 3, strides=2, activation="relu")(base_inputs)
base = layers.BatchNormalization()(base)
base = layers.Conv2D(8, 3, activation="relu")(base)
base_model = keras.Model(base_inputs, base, name="base")
base_model.trainable = False

inputs = keras.Input(shape=(16, 16, 3))
scale_layer = keras.layers.Rescaling(scale=1 / 127.5, offset=-1)
out = scale_layer(inputs)
out = base_model(out, training=False)
out = keras.layers.GlobalAveragePooling2D()(out)
out = keras.layers.Dropout(0.0)(out)
outputs = keras.layers.Dense(1)(out)
model = keras.Model(inputs, outputs)
model.summary(show_trainable=True)

model.compile(
    optimizer=keras.optimizers.Adam(),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy()],
)
before = [w.copy() for w in base_model.get_weights()]
print("Fitting the top layer of the model")
head = model.fit(train_ds, epochs=2, validation_data=validation_ds)
assert all(np.array_equal(a, b) for a, b in zip(before, base_model.get_weights()))

base_model.trainable = True
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy()],
)
print("Fitting the end-to-end model")
tuned = model.fit(train_ds, epochs=2, validation_data=validation_ds)
assert not np.array_equal(before[0], base_model.get_weights()[0])
test = model.evaluate(test_ds)
print("RESULT", json.dumps({"head": head.history, "tuned": tuned.history, "test": test}))
