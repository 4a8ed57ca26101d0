# SPDX-License-Identifier: Apache-2.0
"""One side of `data_memory`: data_of_size.py SIDE KIND MB FOLDER. Prints megabytes as JSON.

SIDE: dtjob (dt.fit) or keras (Model.fit). KIND: array (in memory) or mapped (a file of FOLDER, mapped to be read).
"""

import json
import sys
from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt

side, kind, megabytes, folder = sys.argv[1:]
ROW = 1024
"""Float32 numbers of a row: 4 KB."""


def memory(name):
    """A line of the process's status, in MB: VmRSS, RssFile or VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


def own():
    """What no other process has as well: without the pages of files."""
    return memory("VmRSS") - memory("RssFile")


class Looks(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        self.within = own()


model = keras.Sequential([keras.Input((ROW,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
few = np.ones((64, ROW), "float32")
model.fit(few, few[:, :1], verbose=0)  # what both sides load with the first step is there then
rows = int(megabytes) * 256
if kind == "mapped":
    path = Path(folder) / "rows.npy"
    np.save(path, np.ones((rows, ROW), "float32"))
    x = np.load(path, mmap_mode="r")
else:
    x = np.ones((rows, ROW), "float32")
y, looks = np.ones((rows, 1), "float32"), Looks()
before = own()
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
fit = dt.fit if side == "dtjob" else keras.Model.fit
fit(model, x, y, batch_size=4096, epochs=2, verbose=0, callbacks=[looks])
print("found", json.dumps({"more": looks.within - before, "peak": memory("VmHWM") - memory("RssFile") - before}))
