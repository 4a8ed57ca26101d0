# SPDX-License-Identifier: Apache-2.0
"""Trains on the digits, and appends to a file after each step: its number, and a checksum of all that was trained.

argv: the file, and the number of epochs.
"""

import sys
import zlib
from pathlib import Path

import keras
import numpy as np

digits = np.load(Path(__file__).parents[3] / "examples" / "digits.npz")
x, y = (digits["images"] / 16.0)[..., None].astype("float32"), digits["target"]
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")


class Tell(keras.callbacks.Callback):
    """Appends a line after each step."""

    def on_train_batch_end(self, batch, logs=None):
        """With the state of the optimizer."""
        variables = [*model.variables, *model.optimizer.variables]
        checksum = zlib.crc32(b"".join(np.asarray(one.numpy()).tobytes() for one in variables))
        with Path(sys.argv[1]).open("a") as told:
            told.write(f"{int(model.optimizer.iterations.numpy())} {checksum}\n")


model.fit(x, y, batch_size=64, epochs=int(sys.argv[2]), callbacks=[Tell()], verbose=2)
