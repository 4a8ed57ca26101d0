# SPDX-License-Identifier: Apache-2.0
"""Trains until the file GATE is there. A mark of an owner is old after 2 seconds."""

import sys
import time
from pathlib import Path

import keras
import numpy as np

import dtjob_trainer as dt
from dtjob_trainer.checkpoint import owner

owner.HEARTBEAT_SECONDS, owner.SILENT_SECONDS, owner.POLL_SECONDS = 0.1, 2.0, 0.05
gate = Path(sys.argv[1])


class UntilGate(keras.callbacks.Callback):
    """Makes steps slow, and ends training when the file is there."""

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.01)
        self.model.stop_training = gate.exists()

    def get_state(self):
        return {}

    def set_state(self, state):
        pass


rows = np.arange(20_000, dtype=np.float32).reshape(-1, 1) % 7
model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
dt.fit(model, rows, rows, batch_size=1, epochs=1, callbacks=[UntilGate()], validation_data=(rows[:4], rows[:4]))
