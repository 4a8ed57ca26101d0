# SPDX-License-Identifier: Apache-2.0
"""The model and data that both sides of a benchmark train."""

from pathlib import Path

import keras
import numpy as np

BATCH = 64
DIGITS = Path(__file__).parents[2] / "examples" / "digits.npz"


def data():
    """Images (float32 [n, 8, 8, 1]) and classes (int64 [n]), as many as make whole batches."""
    digits = np.load(DIGITS)
    n = len(digits["target"]) // BATCH * BATCH
    return (digits["images"][:n] / 16.0)[..., None].astype("float32"), digits["target"][:n]


def model(keras=keras):
    """A small convolutional network, not compiled; `keras` may be tf_keras."""
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ]
    )


def loss(keras=keras):
    """The loss of a batch: cross entropy from logits; `keras` may be tf_keras."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
