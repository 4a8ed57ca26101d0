# SPDX-License-Identifier: Apache-2.0
"""Callbacks of its own for each batch, and one that changes the learning rate."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
x = rng.normal(size=(300, 10)).astype("float32")
y = (x @ rng.normal(size=(10, 1)) + 0.1 * rng.normal(size=(300, 1))).astype("float32")


def get_model():
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    model.compile(
        optimizer=keras.optimizers.RMSprop(learning_rate=0.02),
        loss="mean_squared_error",
        metrics=["mean_absolute_error"],
    )
    return model


class CustomLearningRateScheduler(keras.callbacks.Callback):
    def __init__(self, schedule):
        super().__init__()
        self.schedule = schedule

    def on_epoch_begin(self, epoch, logs=None):
        lr = float(np.array(self.model.optimizer.learning_rate))
        scheduled_lr = self.schedule(epoch, lr)
        self.model.optimizer.learning_rate = scheduled_lr


class LossAndErrorPrintingCallback(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches = []

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append([batch, float(logs["loss"])])

    def on_epoch_end(self, epoch, logs=None):
        print("The average loss for epoch {} is {:7.2f}.".format(epoch, logs["loss"]))


printing = LossAndErrorPrintingCallback()
model = get_model()
history = model.fit(
    x,
    y,
    batch_size=64,
    epochs=3,
    verbose=0,
    shuffle=False,
    callbacks=[printing, CustomLearningRateScheduler(lambda epoch, lr: lr * (0.5 if epoch else 1.0))],
)
print("RESULT", json.dumps({"batches": printing.batches, "loss": history.history["loss"]}))
