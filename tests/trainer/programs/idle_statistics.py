# SPDX-License-Identifier: Apache-2.0
"""Trains with BatchNormalization on shards of unlike lengths, and prints the moving statistics that come of it.

Every value of every example is 5: on one device the moving mean comes to 5.
"""

import argparse
import importlib
import json

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
keras = importlib.import_module(parser.parse_args().package)

SHARDS = ((0, 60), (60, 90), (90, 90))  # the last task has no examples, as where there are fewer files than tasks
values = np.full((90, 1), 5.0, "float32")


def shards(context):
    begin, end = SHARDS[context.shard]
    part = tf.data.Dataset.from_tensor_slices((values[begin:end], values[begin:end]))
    return part.filter(lambda *_: True)


norm = keras.layers.BatchNormalization(momentum=0.5, center=False, scale=False)
model = keras.Sequential([keras.Input((1,)), norm, keras.layers.Dense(1, kernel_initializer="zeros")])
model.compile(keras.optimizers.SGD(0.0), "mse")
dt.fit(model, shards, batch_size=12, epochs=2)
print("kept", json.dumps([float(np.asarray(v)[0]) for v in (norm.moving_mean, norm.moving_variance)]), flush=True)
