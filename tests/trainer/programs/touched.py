# SPDX-License-Identifier: Apache-2.0
"""Trains recording models, optimizers and callbacks by `dt.fit` and writes which of their attributes were asked for."""

import argparse
import importlib
import json
from pathlib import Path

import numpy as np

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--out", type=Path, required=True)
options = parser.parse_args()
keras = importlib.import_module(options.package)
touched = {"model": set(), "optimizer": set(), "callbacks": set()}
recording = []
"""Holds something while a model is trained."""


def recorded(kind, base):
    """A subclass of `base` whose attributes are noted as those of `kind`."""

    def getattribute(self, name):
        if recording:
            touched[kind].add(name)
        return base.__getattribute__(self, name)

    return type(base.__name__, (base,), {"__getattribute__": getattribute, "__module__": base.__module__})


class Every(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        pass

    on_train_batch_end = on_test_batch_begin = on_test_batch_end = on_train_batch_begin


Model, SGD = recorded("model", keras.Sequential), recorded("optimizer", keras.optimizers.SGD)
x, y = np.random.default_rng(0).normal(size=(12, 3)).astype("float32"), np.zeros((12, 1), "float32")
settings = [{"use_ema": True, "ema_overwrite_frequency": 2, "clipnorm": 1.0, "weight_decay": 0.1}, {"clipvalue": 1.0}]
if options.package == "keras":
    settings += [{"gradient_accumulation_steps": 2, "global_clipnorm": 1.0}, {"loss_scale_factor": 2.0}]
optimizers = [SGD(0.1, **each) for each in settings]
if options.package == "keras":
    optimizers.append(recorded("optimizer", keras.optimizers.LossScaleOptimizer)(keras.optimizers.SGD(0.1)))
for optimizer in optimizers:
    model = Model([keras.Input((3,)), keras.layers.Dense(1, kernel_regularizer="l2")])
    model.compile(optimizer, "mse", metrics=["mae"])
    callback = recorded("callbacks", Every)()
    recording.append(1)
    dt.fit(model, x, y, batch_size=4, epochs=2, validation_data=(x, y), callbacks=[callback])
    recording.clear()
options.out.write_text(json.dumps({kind: sorted(names) for kind, names in touched.items()}))
