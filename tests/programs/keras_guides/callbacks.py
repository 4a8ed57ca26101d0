# SPDX-License-Identifier: Apache-2.0
"""Callbacks of its own, EarlyStopping with the best weights, CSVLogger, ReduceLROnPlateau, ModelCheckpoint."""

import csv
import json
import os
import tempfile

import keras
import numpy as np

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
x = rng.normal(size=(300, 10)).astype("float32")
y = (x @ rng.normal(size=(10, 1)) + 0.1 * rng.normal(size=(300, 1))).astype("float32")
directory = tempfile.mkdtemp()


def get_model():
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)])
    model.compile(
        optimizer=keras.optimizers.RMSprop(learning_rate=0.02),
        loss="mean_squared_error",
        metrics=["mean_absolute_error"],
    )
    return model


class EarlyStoppingAtMinLoss(keras.callbacks.Callback):
    def __init__(self, patience=0):
        super().__init__()
        self.patience = patience
        self.best_weights = None

    def on_train_begin(self, logs=None):
        self.wait = 0
        self.stopped_epoch = 0
        self.best = np.inf

    def on_epoch_end(self, epoch, logs=None):
        current = logs.get("loss")
        if np.less(current, self.best):
            self.best = current
            self.wait = 0
            self.best_weights = self.model.get_weights()
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch = epoch
                self.model.stop_training = True
                self.model.set_weights(self.best_weights)


class CustomLearningRateScheduler(keras.callbacks.Callback):
    def __init__(self, schedule):
        super().__init__()
        self.schedule = schedule

    def on_epoch_begin(self, epoch, logs=None):
        lr = float(np.array(self.model.optimizer.learning_rate))
        scheduled_lr = self.schedule(epoch, lr)
        self.model.optimizer.learning_rate = scheduled_lr


model = get_model()
second = model.fit(
    x,
    y,
    batch_size=64,
    steps_per_epoch=5,
    epochs=4,
    verbose=0,
    callbacks=[EarlyStoppingAtMinLoss(), CustomLearningRateScheduler(lambda epoch, lr: lr * 0.9)],
    shuffle=False,
)

model = get_model()
log = os.path.join(directory, "log.csv")
best = os.path.join(directory, "best.keras")
third = model.fit(
    x,
    y,
    batch_size=32,
    epochs=6,
    validation_split=0.2,
    shuffle=False,
    callbacks=[
        keras.callbacks.EarlyStopping(monitor="val_loss", patience=2, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.3, patience=1, min_lr=1e-4),
        keras.callbacks.ModelCheckpoint(best, monitor="val_loss", save_best_only=True),
        keras.callbacks.CSVLogger(log),
        keras.callbacks.TerminateOnNaN(),
        keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print("epoch", epoch, sorted(logs))),
    ],
)
after = model.evaluate(x, y, verbose=0)
predictions = model.predict(x[:5])
loaded = keras.models.load_model(best).predict(x[:5])
with open(log) as file:
    rows = [[float(row["epoch"]), float(row["loss"]), float(row["val_loss"])] for row in csv.DictReader(file)]
print(
    "RESULT",
    json.dumps(
        {
            "second": second.history["loss"],
            "third": third.history,
            "after": after,
            "predictions": predictions.tolist(),
            "loaded": loaded.tolist(),
            "rows": rows,
        }
    ),
)
