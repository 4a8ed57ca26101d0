"""Trains 200 MB of weights and writes, as JSON, the gaps between steps: stall.py FILE STEPS EVERY."""

import json
import sys
import time
from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt

MEGABYTES = 200
file, steps, every = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


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
model = keras.Sequential([keras.Input((1000,)), keras.layers.Dense(MEGABYTES * 250), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.01), "mse")
rows = np.zeros((steps * 8, 1000), np.float32)
gaps = Gaps()
dt.fit(model, rows, np.zeros((len(rows), 1), np.float32), batch_size=8, epochs=1, callbacks=[gaps])
# the gap after step k, counted from 1, is gaps[k - 1], and the step that follows it steps[k]
saves = [gap for k, gap in enumerate(gaps.gaps, 1) if k % every == 0]
others = [gap for k, gap in enumerate(gaps.gaps, 1) if k % every]
after = [step for k, step in enumerate(gaps.steps) if k and k % every == 0]
file.write_text(json.dumps({"saves": saves, "others": others, "after": after, "steps": gaps.steps}))
