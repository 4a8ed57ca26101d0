"""Trains by dt.fit and writes the seconds of each epoch, as JSON, to the file named first; epochs second."""

import json
import sys
import time
from pathlib import Path

import keras
from digits_model import BATCH, data, loss, model

import dtjob_trainer as dt


class Clock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.perf_counter() - self.began)


x, y = data()
network, clock = model(), Clock()
network.compile("adam", loss(), metrics=["accuracy"])
dt.fit(network, x, y, batch_size=BATCH, epochs=int(sys.argv[2]), callbacks=[clock])
if dt.is_chief():
    Path(sys.argv[1]).write_text(json.dumps({"steps": len(x) // BATCH, "seconds": clock.seconds}))
