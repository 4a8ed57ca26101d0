# SPDX-License-Identifier: Apache-2.0
"""Keras' guide on several devices: a scope, fit with validation, and checkpoints in a directory to start again from."""

import json
import os
import tempfile

import numpy as np
import tensorflow as tf

import keras

keras.utils.set_random_seed(7)


def get_compiled_model():
    inputs = keras.Input(shape=(20,))
    x = keras.layers.Dense(32, activation="relu")(inputs)
    x = keras.layers.Dense(32, activation="relu")(x)
    outputs = keras.layers.Dense(3)(x)
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=keras.optimizers.Adam(),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy()],
    )
    return model


def get_dataset():
    batch_size = 32
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 20)).astype("float32")
    y = np.abs(x[:, :3]).argmax(axis=1)
    parts = (slice(0, 350), slice(350, 420), slice(420, 500))
    return [tf.data.Dataset.from_tensor_slices((x[part], y[part])).batch(batch_size) for part in parts]


checkpoint_dir = os.path.join(tempfile.mkdtemp(), "ckpt")
os.makedirs(checkpoint_dir)


def make_or_restore_model():
    checkpoints = [checkpoint_dir + "/" + name for name in os.listdir(checkpoint_dir)]
    if checkpoints:
        latest_checkpoint = max(checkpoints, key=os.path.getctime)
        print("Restoring from", latest_checkpoint)
        return keras.models.load_model(latest_checkpoint)
    print("Creating a new model")
    return get_compiled_model()


found = {}


def run_training(epochs=1):
    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        model = make_or_restore_model()
        callbacks = [
            keras.callbacks.ModelCheckpoint(filepath=checkpoint_dir + "/ckpt-{epoch}.keras", save_freq="epoch")
        ]
        train_dataset, val_dataset, test_dataset = get_dataset()
        history = model.fit(train_dataset, epochs=epochs, callbacks=callbacks, validation_data=val_dataset, verbose=2)
        found[f"history-{len(found)}"] = history.history
        found[f"test-{len(found)}"] = model.evaluate(test_dataset)


run_training(epochs=2)
run_training(epochs=1)
print("RESULT", json.dumps(found))
