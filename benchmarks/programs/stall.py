# SPDX-License-Identifier: Apache-2.0
"""Trains weights and writes, as JSON, the gaps between steps: stall.py SIDE FILE EPOCHS EVERY MEGABYTES BEST (0 or 1).

SIDE: dtjob (dt.fit of a job that saves after EVERY steps) or keras (Model.fit with BackupAndRestore, beside FILE).
"""

import json
import sys
import time
from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt

side, file = sys.argv[1], Path(sys.argv[2])
epochs, every, megabytes, best = map(int, sys.argv[3:])


class Gaps(keras.callbacks.Callback):
    """The seconds from the end of a step to the begin of the next: where the loop saves."""

    def __init__(self):
        super().__init__()
        self.gaps, self.steps, self.ended = [], [], None

    def on_train_batch_begin(self, batch, logs=None):
        if self.ended is not None:
            self.gaps.append(time.perf_counter() - self.ended)
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.ended = time.perf_counter()
        self.steps.append(self.ended - self.began)


# dense: a variable that got a sparse update once is copied by TensorFlow each time it is read, and so by each save
model = keras.Sequential([keras.Input((1000,)), keras.layers.Dense(megabytes * 250), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.01), "mse")
per_epoch = every + 1  # so that no save is at an epoch's end, where callbacks take their time
rows = np.zeros((per_epoch * 8, 1000), np.float32)
gaps = Gaps()
callbacks = [gaps]
if best:  # the best weights are there from the end of the first epoch on
    callbacks.append(keras.callbacks.EarlyStopping("loss", patience=epochs, restore_best_weights=True))
if side == "keras":
    callbacks.append(keras.callbacks.BackupAndRestore(str(file.parent / "backup"), every, delete_checkpoint=False))
fit = dt.fit if side == "dtjob" else keras.Model.fit
fit(model, rows, np.zeros((len(rows), 1), np.float32), batch_size=8, epochs=epochs, callbacks=callbacks)
# the gap after step k, counted from 1, is gaps[k - 1], and the step that follows it steps[k]
later = range(per_epoch + 1, len(gaps.gaps) + 1)
saves = [gaps.gaps[k - 1] for k in later if k % every == 0]
others = [gaps.gaps[k - 1] for k in later if k % every and k % per_epoch]
after = [gaps.steps[k] for k in later if k % every == 0]
file.write_text(json.dumps({"saves": saves, "others": others, "after": after, "steps": gaps.steps}))
