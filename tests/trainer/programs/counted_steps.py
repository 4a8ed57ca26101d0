"""Under ParameterServer: a table for each ps, which counts in a row for each step how often that step was done.

A test holds steps and saves by files in DIRECTORY. A step waits, before it changes anything, while the file `hold-N` of
its dozen is there, and says so by the file `in-STEP`. A save of step N waits while `hold-save-N` is there, and says so
by `saving-N`.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.checkpoint import writer

DOZEN = 12
parser = argparse.ArgumentParser()
parser.add_argument("--directory", type=Path, required=True)
parser.add_argument("--steps", type=int, required=True)
options = parser.parse_args()
with dt.strategy().scope():  # TensorFlow places variables on one server after the other
    tables = [tf.Variable(tf.zeros(options.steps)) for _ in range(2)]
write = writer.write


def held_write(directory, step, *arguments):
    (options.directory / f"saving-{step}").touch()
    while (options.directory / f"hold-save-{step}").exists():
        time.sleep(0.01)
    write(directory, step, *arguments)


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


writer.write = held_write
steps = tf.data.Dataset.range(options.steps).batch(1)
dt.train(step_fn, steps, variables=tables, total_steps=options.steps)
for table in tables:
    counts, numbers = np.unique(table.numpy(), return_counts=True)
    print(f"steps by how often they were done: {dict(zip(counts.tolist(), numbers.tolist(), strict=True))}")
    assert counts.tolist() == [1.0]
