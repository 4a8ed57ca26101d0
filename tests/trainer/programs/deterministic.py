# SPDX-License-Identifier: Apache-2.0
"""Trains on a Dataset where every operation is to be deterministic, and tells the steps of each call.

Some steps are measured, as with GPUs. Of unknown length in one process; where tasks train together, those must know it
for steps to take batches by themselves.
"""

import json

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.engines import synchronous
from dtjob_trainer.process import runtime

STEPS, BATCH = 40, 8
tf.config.experimental.enable_op_determinism()
tf.config.experimental.get_synchronous_execution = lambda: False
calls, measured = [], 0
run = synchronous.SynchronousEngine._run


def counting(self, kind, source, work):
    global measured
    measured += self.measures_next
    made = run(self, kind, source, work)
    calls.append(made[1])
    return made


synchronous.SynchronousEngine._run = counting
x = np.random.default_rng(3).normal(size=(STEPS * BATCH, 5)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(BATCH)
if dt.strategy().num_replicas_in_sync == 1:
    data = data.filter(lambda *_: True)
model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile("adam", "mse")
dt.fit(model, data, epochs=1)
assert measured, calls
runtime.current().log(f"calls {json.dumps(calls)}")
