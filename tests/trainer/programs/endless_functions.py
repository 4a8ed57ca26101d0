# SPDX-License-Identifier: Apache-2.0
"""Trains to the step that it is told on data of unknown length, and prints the sum of the last batch."""

import sys

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

steps = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


def all_of_them():
    """64 examples, their own numbers."""
    return tf.data.Dataset.from_tensor_slices(np.arange(64, dtype=np.float32)).filter(lambda number: number >= 0)


def share(context):
    """This shard's of them, without a word of how many they are."""
    numbers = np.arange(64, dtype=np.float32)[context.shard :: context.shards]
    return tf.data.Dataset.from_tensor_slices(numbers)


def one_step(batch):
    steps.assign_add(1)
    return {"sum": tf.reduce_sum(batch)}


data = all_of_them if sys.argv[1] == "whole" else share
last = dt.train(one_step, data, variables=[steps], total_steps=int(sys.argv[2]), batch_size=16)
print("last", last["sum"], flush=True)
