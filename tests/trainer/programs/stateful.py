# SPDX-License-Identifier: Apache-2.0
"""A stateful recurrent layer of stacked cells. Waits for --gate after its second epoch."""

import argparse
import importlib
import time
from pathlib import Path

import numpy as np

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--gate", required=True)
options = parser.parse_args()
keras = importlib.import_module(options.package)
layers = keras.layers

random = np.random.default_rng(0)
x = random.normal(size=(32, 5, 3)).astype("float32")
y = x.sum((1, 2))[:, None]
inputs = keras.Input(batch_shape=(8, 5, 3))
stacked = layers.RNN([layers.SimpleRNNCell(3), layers.SimpleRNNCell(2)], stateful=True)(inputs)
model = keras.Model(inputs, layers.Dense(1)(stacked))
model.compile(keras.optimizers.Adam(0.01), "mse")


class Wait(keras.callbacks.Callback):
    """Tells how many steps the model has behind it where callbacks begin, and changes a variable there."""

    def tell(self, method):
        print(method, "sees", int(np.asarray(self.model.optimizer.iterations)), flush=True)

    def set_model(self, model):
        super().set_model(model)
        self.tell("set_model")

    def on_train_begin(self, logs=None):
        self.tell("on_train_begin")

    def on_epoch_begin(self, epoch, logs=None):
        self.tell("on_epoch_begin")
        rate = self.model.optimizer.learning_rate
        rate.assign(rate * 0.9)

    def on_epoch_end(self, epoch, logs=None):
        while epoch == 1 and not Path(options.gate).exists():
            time.sleep(0.01)

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


dt.fit(model, x, y, batch_size=8, epochs=4, shuffle=False, callbacks=[Wait()])
