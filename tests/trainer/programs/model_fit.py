# SPDX-License-Identifier: Apache-2.0
"""`Model.fit`, `evaluate` and `predict` themselves, and a strategy of the script's own, as in an existing script."""

import argparse
import importlib

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--strategy", default="MirroredStrategy")
parser.add_argument("--legacy", choices=["SGD", "Adam", "RMSprop"], help="an older optimizer of tf_keras")
parser.add_argument("--clipnorm", type=float)
parser.add_argument("--epochs", type=int, default=2)
options = parser.parse_args()
keras = importlib.import_module(options.package)

tf.config.threading.set_intra_op_parallelism_threads(2)
kind = getattr(tf.distribute, options.strategy)
shards = options.strategy == "ParameterServerStrategy"
if shards:
    cut = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy = kind(tf.distribute.cluster_resolver.TFConfigClusterResolver(), variable_partitioner=cut)
else:
    strategy = kind()
assert isinstance(strategy, kind)
assert isinstance(strategy, tf.distribute.Strategy)
assert kind() is strategy
x = np.random.default_rng(0).normal(size=(96, 4)).astype("float32")
y = x @ np.array([[1.0], [2.0], [-1.0], [0.5]], np.float32)
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
    optimizer = keras.optimizers.SGD(0.05)
    if options.legacy:
        optimizer = getattr(keras.optimizers.legacy, options.legacy)(0.05, clipnorm=options.clipnorm)
    model.compile(optimizer, "mse", metrics=["mae"])
if shards:
    assert len(model.layers[0].kernel.value.variables) == 2
history = model.fit(x, y, batch_size=32, epochs=options.epochs, shuffle=False).history
predicted = model.predict(x, batch_size=40, verbose=0)
assert predicted.shape == (96, 1)
named = model.evaluate(x, y, batch_size=32, verbose=0, return_dict=True)
found = [*history["loss"], *history["mae"], *model.evaluate(x, y, batch_size=40)]
assert np.allclose(found[-2:], [named["loss"], named["mae"]])
assert np.isclose(found[-2], ((predicted - y) ** 2).mean())
with strategy.scope():
    images = keras.Sequential([keras.layers.Input((8, 8, 3)), keras.layers.Conv2D(4, 3, 2), keras.layers.Flatten()])
pixels = np.ones((3, 8, 8, 3), "float32")
assert images.predict(pixels, batch_size=2, verbose=0).shape == (3, 36)  # of a last batch, some replica has no row
one_by_one = np.concatenate([model.predict_on_batch(x[row : row + 1]) for row in range(3)])
assert np.allclose(one_by_one, predicted[:3], atol=1e-5)
assert model.predict_on_batch(x).shape == (96, 1)
print("found", *found)
