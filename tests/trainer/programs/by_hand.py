# SPDX-License-Identifier: Apache-2.0
"""Trains two epochs of four steps with a bar, by hand: in a terminal it moves."""

import keras
import numpy as np

import dtjob_trainer as dt

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
mine = keras.callbacks.History()
history = dt.fit(model, np.ones((40, 3)), np.ones((40, 1)), 10, 2, 1, [mine, keras.callbacks.ProgbarLogger()])
assert history is mine is model.history
assert history.params == {"verbose": 1, "epochs": 2, "steps": 4}
assert len(history.history["loss"]) == 2
keras.config.set_max_epochs(1)
keras.config.set_max_steps_per_epoch(2)
history = dt.fit(model, np.ones((40, 3)), np.ones((40, 1)), 10, 2, 0)
assert (history.epoch, history.params["steps"], int(model.optimizer.iterations.numpy())) == ([0], 2, 10)
