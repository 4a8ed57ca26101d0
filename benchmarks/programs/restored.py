# SPDX-License-Identifier: Apache-2.0
"""One side of `restore_memory`: restored.py SIDE MB EPOCHS FILE FOLDER.

SIDE: dtjob (dt.fit of a job with checkpoints) or keras (Model.fit with BackupAndRestore in FOLDER). Trains weights of
so many MB until EPOCHS are done, and goes on from where an earlier run has ended. Writes to FILE, as JSON, the peak of
its memory up to the last step (MB above that before `fit`), and the seconds from `fit` to the first step.
"""

import json
import sys
import time
from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt

side, megabytes, epochs, file, folder = sys.argv[1:]
LAYERS, STEPS = 8, 3


def memory(kind):
    """VmRSS or VmHWM, the peak, of this process in MB."""
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(kind))
    return int(line.split()[1]) / 1024


class Looks(keras.callbacks.Callback):
    """Notes when steps begin, and the peak at the end of the last one: saves that follow do not count.

    Not in attributes, which dtjob restores.
    """

    def on_train_batch_begin(self, batch, logs=None):
        began.append(time.perf_counter())

    def on_train_batch_end(self, batch, logs=None):
        peaks.append(memory("VmHWM"))


width = int((float(megabytes) * 1e6 / 4 / LAYERS) ** 0.5)
stack = [keras.layers.Dense(width, use_bias=False) for _ in range(LAYERS)]
model = keras.Sequential([keras.Input((width,)), *stack, keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(1e-9), "mse")
x, callbacks = np.ones((8 * STEPS, width), np.float32), [Looks()]
began, peaks = [], []
if side == "keras":
    callbacks.append(keras.callbacks.BackupAndRestore(folder, delete_checkpoint=False))
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
called = time.perf_counter()
fit = dt.fit if side == "dtjob" else keras.Model.fit
fit(model, x, x[:, :1], batch_size=8, epochs=int(epochs), verbose=0, callbacks=callbacks)
Path(file).write_text(json.dumps({"peak": peaks[-1] - before, "seconds": began[0] - called}))
