# SPDX-License-Identifier: Apache-2.0
"""Classifies handwritten digits. The chief sends the metrics of each epoch to Weights & Biases."""

from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt

digits = np.load(Path(__file__).with_name("digits.npz"))
images, labels = (digits["images"] / 16.0)[..., None].astype("float32"), digits["target"]
x, y, xv, yv = images[360:], labels[360:], images[:360], labels[:360]

model = keras.Sequential([
    keras.Input((8, 8, 1)),
    keras.layers.Conv2D(32, 3, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(10, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
callbacks = []
if dt.is_chief():
    import wandb

    run = wandb.init(project="digits")
    callbacks.append(keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: run.log(logs, step=epoch)))
model.fit(x, y, batch_size=64, epochs=20, validation_data=(xv, yv), callbacks=callbacks, verbose=2)
