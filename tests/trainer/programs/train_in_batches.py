# SPDX-License-Identifier: Apache-2.0
"""A custom loop over 256 rows in batches of the size that it is told; says which rows a step had; may end itself."""

import sys

import numpy as np
import tensorflow as tf
from asked_to_end import ask_for_an_end

import dtjob_trainer as dt

size, total, ends_after = (int(argument) for argument in sys.argv[1:])
steps = tf.Variable(0, dtype=tf.int64, trainable=False)


def note(step, rows):
    """Say it, and ask for an end in this step."""
    print("step", int(step), "rows", *sorted(int(row) for row in rows), flush=True)
    if step == ends_after:
        ask_for_an_end()


def step_fn(rows):
    step = steps.assign_add(1)
    tf.py_function(note, [step, rows], [])
    return {"steps": tf.cast(step, tf.float32)}


dt.train(step_fn, np.arange(256), variables={"steps": steps}, total_steps=total, batch_size=size)
