# SPDX-License-Identifier: Apache-2.0
"""Trains, and has the chief alone save in a callback of every task and after training, in every way that there is."""

import sys
import threading
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

directory = Path(sys.argv[1])
x = np.random.default_rng(7).random((128, 8), np.float32)
layers = [keras.layers.Dense(4), keras.layers.BatchNormalization(), keras.layers.Dropout(0.1), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input((8,)), *layers])
model.compile("adam", "mse", metrics=["mae"])


def save(when: str) -> None:
    """Each file at the chief alone: a name that any other task writes would be another's."""
    np.savez(directory / f"{when}.npz", *model.get_weights())
    model.save(directory / f"{when}.keras")
    model.save_weights(directory / f"{when}.weights.h5")
    model.export(directory / f"{when}.exported", verbose=False)
    keras.saving.save_model(model, directory / f"{when}.function.keras")
    tf.keras.models.save_model(model, directory / f"{when}.tf.keras")
    with dt.strategy().scope():
        model.save(directory / f"{when}.scope.keras")
    aside = threading.Thread(target=model.save, args=(directory / f"{when}.thread.keras",))
    aside.start()
    aside.join()


def epoch_end(epoch: int, _: object) -> None:
    if dt.is_chief():
        save(f"epoch-{epoch}")


saving = keras.callbacks.LambdaCallback(on_epoch_end=epoch_end)
dt.fit(model, x, x.sum(1, keepdims=True), batch_size=32, epochs=1, callbacks=[saving], verbose=0)
trained = model.get_weights()
model.load_weights(directory / "epoch-0.weights.h5")  # in every task
model.set_weights(trained)
if dt.is_chief():
    while not (directory / "worker-is-done").exists():  # from here on nobody answers
        time.sleep(0.01)
    save("after")
