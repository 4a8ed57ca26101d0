# SPDX-License-Identifier: Apache-2.0
"""Saves of a table on parameter servers: ps_saves.py SIDE SERVERS MEGABYTES EVERY FILE [CHECKPOINT].

SIDE dtjob trains by dt.train, which saves by itself after EVERY steps. SIDE alone schedules the same steps on
TensorFlow's ClusterCoordinator, joins them after EVERY steps and writes a `tf.train.Checkpoint` to CHECKPOINT.
Writes to FILE, as JSON, when each step ended, when each save alone was done, and the chief's memory in MB.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

side, servers, megabytes, every, file = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
STEPS, BATCH, IDS, WIDTH, RATE = 2 * every + every // 2, 8, 8, 64, 0.1
strategy = dt.strategy()
rows = int(megabytes * 1e6 / 4 / WIDTH / servers)


def memory(kind):
    """VmRSS or VmHWM, the peak, of this process in MB."""
    line = next(each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith(kind))
    return int(line.split()[1]) / 1000


with strategy.scope():  # TensorFlow places variables on one server after the other
    shards = [tf.Variable(lambda: tf.zeros((rows, WIDTH)), shape=(rows, WIDTH)) for _ in range(servers)]
    ends, count = tf.Variable(tf.zeros(STEPS, tf.float64)), tf.Variable(0)


def step_fn(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.nn.embedding_lookup(shards, x) - 1.0) ** 2)
    for shard, slices in zip(shards, tape.gradient(loss, shards), strict=True):
        shard.scatter_sub(tf.IndexedSlices(RATE * slices.values, slices.indices))
    with tf.control_dependencies([loss]):
        number = count.assign_add(1)
        ends.scatter_nd_update([[number - 1]], [tf.timestamp()])
    return {"loss": loss}


x = np.random.default_rng(0).integers(0, rows * servers, (STEPS * BATCH, IDS)).astype(np.int32)
before, saved = memory("VmRSS"), []
if side == "dtjob":
    dt.train(step_fn, x, batch_size=BATCH, variables=[*shards, ends, count], total_steps=STEPS)
else:
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    signature = [tf.TensorSpec([None, IDS], tf.int32)]
    step = tf.function(lambda x: strategy.run(step_fn, args=(x,)), input_signature=signature)
    checkpoint = tf.train.Checkpoint(shards=shards, ends=ends, count=count)
    for number in range(STEPS):
        coordinator.schedule(step, args=(tf.constant(x[number * BATCH : number * BATCH + BATCH]),))
        if (number + 1) % every == 0:
            coordinator.join()
            checkpoint.write(f"{sys.argv[6]}/{number + 1}")
            saved.append(time.time())
    coordinator.join()
if dt.is_chief():
    told = {"ends": sorted(ends.numpy().tolist()), "saved": saved, "before": before, "peak": memory("VmHWM")}
    Path(file).write_text(json.dumps(told))
