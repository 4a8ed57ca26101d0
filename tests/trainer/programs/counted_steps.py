# SPDX-License-Identifier: Apache-2.0
"""Under ParameterServer: a table for each ps, which counts in a row for each step how often that step was done.

A test holds steps and saves by files in DIRECTORY. A step waits, before it changes anything, while the file `hold-N` of
its dozen is there, and says so by the file `in-STEP`. If ps-1 writes its part of a save by itself, that waits while
`hold-save-N` is there, for step N, and the file `saving-N` says so. Prints which tasks have written and read tables.
"""

import argparse
import re
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.checkpoint import parts
from dtjob_trainer.checkpoint.directory import STATE
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.models import values

DOZEN = 12
parser = argparse.ArgumentParser()
parser.add_argument("--directory", type=Path, required=True)
parser.add_argument("--steps", type=int, required=True)
options = parser.parse_args()
with dt.strategy().scope():  # TensorFlow places variables on one server after the other
    tables = [tf.Variable(tf.zeros(options.steps)) for _ in range(2)]
values.PIECE_BYTES = 4 * (options.steps * 2 // 5)  # a table is in three pieces
save, read = parts.save, Stored.read
writers, readers = set(), set()


def task_of(device):
    """Such as ps-1."""
    return "-".join(
        re.search(r"/job:(\w+)/.*/task:(\d+)/", tf.identity(0).device if device == parts.HERE else device).groups()
    )


def noted_save(prefix, entries, device=parts.HERE):
    step, writer = re.search(r"ckpt-(\d+)_temp", prefix)[1], task_of(device)
    if any(place and name != STATE for name, place, _ in entries):
        writers.add(writer)
    while writer == "ps-1" and (options.directory / f"hold-save-{step}").exists():
        (options.directory / f"saving-{step}").touch()
        time.sleep(0.01)
    save(prefix, entries, device)


def noted_read(self, names, slices=None):
    tensors = read(self, names, slices)
    if names != [STATE] and any(slices or ()):
        readers.add(task_of(tensors[0].device))
    return tensors


def step_fn(numbers):
    number = numbers[0]
    hold = tf.strings.join([f"{options.directory}/hold-", tf.strings.as_string(number // DOZEN)])
    inside = tf.strings.join([f"{options.directory}/in-", tf.strings.as_string(number)])

    def wait(turns):
        with tf.control_dependencies([tf.raw_ops.WriteFile(filename=inside, contents="")]):
            return [turns + 1]

    (turns,) = tf.while_loop(lambda _: tf.size(tf.io.matching_files(hold)) > 0, wait, [0], parallel_iterations=1)
    with tf.control_dependencies([turns]):
        one = tf.ones_like(number, tf.float32)
    for table in tables:
        table.scatter_add(tf.IndexedSlices(one[None], number[None]))


parts.save, Stored.read = noted_save, noted_read
steps = tf.data.Dataset.range(options.steps).batch(1)
dt.train(step_fn, steps, variables=tables, total_steps=options.steps)
for table in tables:
    counts, numbers = np.unique(table.numpy(), return_counts=True)
    print(f"steps by how often they were done: {dict(zip(counts.tolist(), numbers.tolist(), strict=True))}")
    assert counts.tolist() == [1.0]
print(f"tables written by {sorted(writers)}, read by {sorted(readers)}")
