# SPDX-License-Identifier: Apache-2.0
"""Fits in loops: folds, learning rates, and one epoch after another with initial_epoch."""

import json

import keras
import numpy as np

keras.utils.set_random_seed(22)
rng = np.random.default_rng(14)
x = rng.normal(size=(180, 6)).astype("float32")
y = (x[:, :1] - x[:, 1:2] ** 2).astype("float32")
found = {"folds": [], "rates": [], "epochs": []}


def build(rate=0.01):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(12, activation="tanh"), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(rate), loss="mse", metrics=["mae"])
    return model


k = 3
for fold in range(k):
    held = slice(fold * 60, (fold + 1) * 60)
    train_x, train_y = np.delete(x, held, axis=0), np.delete(y, held, axis=0)
    model = build()
    model.fit(train_x, train_y, epochs=2, batch_size=16, verbose=0, shuffle=False)
    found["folds"].append(model.evaluate(x[held], y[held], verbose=0))
    keras.backend.clear_session()

best = None
for rate in (0.1, 0.01):
    keras.utils.set_random_seed(1)
    model = build(rate)
    history = model.fit(x, y, validation_split=0.2, epochs=2, batch_size=16, verbose=0, shuffle=False)
    loss = min(history.history["val_loss"])
    if best is None or loss < best[0]:
        best = (loss, rate)
    found["rates"].append(loss)
found["best"] = best[1]

model = build()
for epoch in range(3):
    history = model.fit(x, y, initial_epoch=epoch, epochs=epoch + 1, batch_size=32, verbose=0, shuffle=False)
    found["epochs"] += history.history["loss"]
found["predicted"] = model.predict(x[:7], verbose=0).tolist()
print("RESULT", json.dumps(found))
