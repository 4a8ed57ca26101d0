"""`Model.fit` and `Model.evaluate` themselves, as an existing script calls them."""

import argparse
import importlib
import os

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.errors import ModelFitError
from dtjob_trainer.models.refused_methods import refused

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--refused", action="store_true")
options = parser.parse_args()
keras = importlib.import_module(options.package)

x = np.random.default_rng(0).normal(size=(96, 4)).astype("float32")
y = x @ np.array([[1.0], [2.0], [-1.0], [0.5]], np.float32)
model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
model.compile(keras.optimizers.SGD(0.05), "mse", metrics=["mae"])
if options.refused:
    for method in refused(TRAITS[os.environ["DTJOB_STRATEGY"]]):
        try:
            getattr(model, method)(x, y)
        except ModelFitError as error:
            print(error)
        else:
            raise AssertionError(f"{method} was not refused")
if isinstance(dt.strategy(), tf.distribute.ParameterServerStrategy):  # where tf_keras asks for numbers of steps
    data = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(32)
    history = model.fit(data, steps_per_epoch=3, epochs=2, verbose=0).history
    found = [*history["loss"], *history["mae"], *model.evaluate(data, steps=3, verbose=0)]
else:
    history = model.fit(x, y, batch_size=32, epochs=2, shuffle=False, verbose=0).history
    found = [*history["loss"], *history["mae"], *model.evaluate(x, y, batch_size=32, verbose=0)]
if dt.is_chief():
    print("found", *found)
