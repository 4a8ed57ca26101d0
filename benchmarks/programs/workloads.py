# SPDX-License-Identifier: Apache-2.0
"""The models and the data that every side of `steps_per_second` trains on."""

from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf
from sizes import STEPS

CLASSES = 10


@dataclass(frozen=True)
class Workload:
    """A model's input shape, the examples of a step, and the steps of an epoch."""

    shape: tuple[int, ...]
    batch: int
    steps: int


WORKLOADS = {
    "small": Workload((32,), 32, STEPS["small"]),
    "5m": Workload((784,), 64, STEPS["5m"]),
    "resnet": Workload((32, 32, 3), 32, STEPS["resnet"]),
    "resnet-512": Workload((32, 32, 3), 512, STEPS["resnet-512"]),
}


def arrays(workload):
    """Random examples (float32) and their classes (int64), as many as an epoch has."""
    chance = np.random.default_rng(0)
    n = workload.batch * workload.steps
    x = chance.standard_normal((n, *workload.shape), np.float32)
    return x, chance.integers(0, CLASSES, n)


def dataset(workload, kind):
    """The same as a batched pipeline, of known or of unknown length."""
    batches = tf.data.Dataset.from_tensor_slices(arrays(workload)).shuffle(1024, seed=0)
    batches = batches.batch(workload.batch, drop_remainder=True).prefetch(2)
    if kind == "unknown":
        batches = batches.filter(lambda *_: True)
    return batches


def model(name):
    """A model of this name, not compiled."""
    if name.startswith("resnet"):
        return _resnet()
    widths = [64, 64] if name == "small" else [2000, 1600]
    hidden = [keras.layers.Dense(width, activation="relu") for width in widths]
    return keras.Sequential([keras.Input(WORKLOADS[name].shape), *hidden, keras.layers.Dense(CLASSES)])


def loss():
    """The loss of a batch: cross entropy from logits."""
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def _resnet():
    layers = keras.layers
    inputs = keras.Input((32, 32, 3))
    x = layers.Conv2D(16, 3, padding="same", use_bias=False)(inputs)
    for width, stride in ((16, 1), (32, 2), (64, 2)):
        branch = x
        for number in range(2):
            branch = layers.BatchNormalization()(branch)
            branch = layers.Activation("relu")(branch)
            branch = layers.Conv2D(width, 3, stride if number == 0 else 1, padding="same", use_bias=False)(branch)
        x = layers.Conv2D(width, 1, stride, use_bias=False)(x) if x.shape[-1] != width or stride > 1 else x
        x = layers.Add()([x, branch])
    x = layers.Activation("relu")(layers.BatchNormalization()(x))
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.GlobalAveragePooling2D()(x)))
