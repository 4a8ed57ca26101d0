# SPDX-License-Identifier: Apache-2.0
"""Trains a small convolutional network on handwritten digits: 1,797 images of 8×8 pixels from 0 to 16, ten classes.

The images are the test set of E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits" (1998), of the UCI
Machine Learning Repository, under CC BY 4.0: those that scikit-learn's load_digits gives.
"""

import argparse
from pathlib import Path

import keras
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--model", default="model.keras", help="where to save the trained model")
options = parser.parse_args()

digits = np.load(Path(__file__).with_name("digits.npz"))
images = (digits["images"] / 16.0)[..., None].astype("float32")
held_out = np.arange(len(images)) % 5 == 0
x, y = images[~held_out], digits["target"][~held_out]
xv, yv = images[held_out], digits["target"][held_out]

model = keras.Sequential([
    keras.Input((8, 8, 1)),
    keras.layers.Conv2D(32, 3, padding="same", use_bias=False),
    keras.layers.BatchNormalization(),
    keras.layers.ReLU(),
    keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
    keras.layers.MaxPooling2D(),
    keras.layers.Dropout(0.3),
    keras.layers.Flatten(),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dropout(0.3),
    keras.layers.Dense(10, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, batch_size=options.batch_size, epochs=options.epochs, validation_data=(xv, yv), verbose=2)
print(f"held-out accuracy {history.history['val_accuracy'][-1]:.4f}")
model.save(options.model)
