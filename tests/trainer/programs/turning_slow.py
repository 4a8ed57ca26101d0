# SPDX-License-Identifier: Apache-2.0
"""Trains with steps that turn slow right after the tasks have planned 50 or more; worker 1 gets SIGTERM then.

turning_slow.py SECONDS: those of a slow step.
"""

import os
import signal
import sys
import time

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.loops import control

turned = []
agree = control.Control.agree


def agree_and_turn(self, *args, **overlaps):
    found = agree(self, *args, **overlaps)
    if not turned and control.steps_until(found.steps_per_second, control.AGREE_SECONDS, 2) >= 50:
        turned.append(True)
        if not dt.is_chief():
            os.kill(os.getpid(), signal.SIGTERM)
    return found


def wait(_):
    if turned:
        time.sleep(float(sys.argv[1]))
    return np.float32(0)


class TurningSlow(keras.layers.Layer):
    """Adds nothing to its input, and waits."""

    def call(self, x):
        return x + tf.ensure_shape(tf.numpy_function(wait, [tf.reduce_sum(x)], tf.float32), [])

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)


control.AGREE_SECONDS = 1.0  # a busy machine comes to 50 steps in a second, and hardly in a quarter
control.Control.agree = agree_and_turn
model = keras.Sequential([keras.Input((1,)), TurningSlow(), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(1e-6), "mse")
dt.fit(model, np.ones((400_000, 1)), np.ones((400_000, 1)), batch_size=4, verbose=0)
