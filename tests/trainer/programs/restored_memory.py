# SPDX-License-Identifier: Apache-2.0
"""Prints the peak of its resident memory, in MB, after the epochs that it has trained: of a model of 134 MB."""

import argparse
from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, required=True)
epochs = parser.parse_args().epochs
stack = [keras.layers.Dense(2048, use_bias=False) for _ in range(8)]
model = keras.Sequential([keras.Input((2048,)), *stack, keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(1e-6), "mse")
x, y = np.ones((8, 2048), np.float32), np.ones((8, 1), np.float32)
dt.fit(model, x, y, batch_size=8, epochs=epochs, verbose=0)
(peak,) = (each.split()[1] for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmHWM"))
print("peak", int(peak) // 1024, flush=True)
