# SPDX-License-Identifier: Apache-2.0
"""Two calls of `Model.fit`, as of transfer learning, in a script that names a strategy of its own and not dtjob."""

import argparse
import json
import os
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--gate", type=Path, help="the second fit of the first task waits in an epoch for this file")
options = parser.parse_args()
waits = json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0 and options.gate is not None

strategy = tf.distribute.MirroredStrategy()
assert isinstance(strategy, tf.distribute.MirroredStrategy)
assert isinstance(strategy, tf.distribute.Strategy)
digits = np.load(Path(__file__).parents[3] / "examples" / "digits.npz")
x, y = (digits["images"][:96].reshape(96, -1) / 16.0).astype("float32"), digits["target"][:96]


class Hold(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        while epoch == 5 and waits and not options.gate.exists():
            time.sleep(0.01)

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


def compiled(rate):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])


with strategy.scope():
    base = keras.Sequential([keras.Input((64,)), keras.layers.Dense(8, "relu")])
    base.trainable = False
    model = keras.Sequential([base, keras.layers.Dense(10)])
    compiled(1e-2)
first = model.fit(x, y, batch_size=32, epochs=4, validation_data=(x, y), verbose=0)
print("first", first.history["loss"], first.epoch)
base.trainable = True
with strategy.scope():
    compiled(1e-3)
second = model.fit(
    x, y, batch_size=32, epochs=8, initial_epoch=4, validation_data=(x, y), callbacks=[Hold()], verbose=0
)
print("second", second.history["loss"], second.epoch)
print("evaluated", model.evaluate(x, y, verbose=0))
