# SPDX-License-Identifier: Apache-2.0
"""`train_on_batch`, `test_on_batch` and `predict_on_batch`, as loops of older scripts call them."""

import argparse
import importlib

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
keras = importlib.import_module(parser.parse_args().package)

x = np.random.default_rng(0).normal(size=(48, 4)).astype("float32")
y = x @ np.array([[1.0], [2.0], [-1.0], [0.5]], np.float32)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
model.compile(keras.optimizers.SGD(0.05, momentum=0.5), "mse", metrics=["mae"])
found = []
for begin in range(0, 48, 16):
    found += model.train_on_batch(x[begin : begin + 16], y[begin : begin + 16])
found += model.test_on_batch(x, y)
found += model.predict_on_batch(x[:3]).ravel().tolist()
found += model.get_weights()[0].ravel().tolist()
print("found", *map(float, found))
