# SPDX-License-Identifier: Apache-2.0
"""Every loop with both Keras packages, one after the other: prints what each comes to, or the words that refuse it.

All train the same model on the same batches in the same order, so that all must come to the same numbers. Where the
first way to call a loop is refused, the next one is tried.
"""

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

BATCH_SIZE, EPOCHS, EXAMPLES = 48, 10, 960
LEARNING_RATE = 0.1
"""Low enough that ParameterServer's late gradients do no harm."""

digits = np.load(Path(__file__).parents[3] / "examples" / "digits.npz")
images = (digits["images"] / 16.0).reshape(-1, 64).astype("float32")
labels = digits["target"]
x, y, xv, yv = images[:EXAMPLES], labels[:EXAMPLES], images[EXAMPLES:], labels[EXAMPLES:]
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH_SIZE, drop_remainder=True)
random = np.random.default_rng(0)
WEIGHTS = [
    random.normal(scale=0.15, size=(64, 32)),
    np.zeros(32),
    random.normal(scale=0.2, size=(32, 10)),
    np.zeros(10),
]


def model_of(keras: Any, own_step: bool) -> Any:
    """A compiled model with the same weights in both packages."""

    class OwnStep(keras.Sequential):
        def train_step(self, data):
            inputs, targets = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x=inputs, y=targets, y_pred=self(inputs, training=True))
            gradients = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
            return {"loss": loss}

    layers = [keras.layers.Input((64,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(10)]
    model = (OwnStep if own_step else keras.Sequential)(layers)
    model.set_weights(WEIGHTS)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(LEARNING_RATE), loss)
    return model


def package_that_raised(error: BaseException) -> str:
    """The package whose code found that it cannot go on."""
    frame = error.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame.tb_frame.f_globals["__name__"].partition(".")[0]


Way = Callable[[], Any]
"""One way to call a loop; returns the loss that it reports last."""


def fit(keras: Any, model: Any) -> Iterator[Way]:
    yield lambda: dt.fit(model, dataset, epochs=EPOCHS).history["loss"][-1]


def train(keras: Any, model: Any) -> Iterator[Way]:
    optimizer = keras.optimizers.SGD(LEARNING_RATE)
    optimizer.build(model.trainable_variables)

    def step_fn(batch):
        inputs, targets = batch
        with tf.GradientTape() as tape:
            logits = model(inputs, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
            loss = tf.reduce_sum(losses) / BATCH_SIZE
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    arguments = {"variables": [model, optimizer], "total_steps": EPOCHS * EXAMPLES // BATCH_SIZE}
    yield lambda: dt.train(step_fn, dataset, **arguments)["loss"]
    yield lambda: dt.train(step_fn, dt.strategy().experimental_distribute_dataset(dataset), **arguments)["loss"]


def model_fit(keras: Any, model: Any) -> Iterator[Way]:
    options = {"epochs": EPOCHS, "verbose": 0}
    yield lambda: model.fit(x, y, batch_size=BATCH_SIZE, shuffle=False, **options).history["loss"][-1]
    steps = EXAMPLES // BATCH_SIZE
    yield lambda: model.fit(dataset.repeat(), steps_per_epoch=steps, **options).history["loss"][-1]


LOOPS = {
    "dt.fit": (fit, False),
    "dt.fit, own train_step": (fit, True),
    "dt.train": (train, False),
    "Model.fit": (model_fit, False),
}

for loop, (ways, own_step) in LOOPS.items():
    for package in ("keras", "tf_keras"):
        keras = importlib.import_module(package)
        model = model_of(keras, own_step)
        told = {"loop": loop, "package": package, "refusals": []}
        for way in ways(keras, model):
            try:
                told["reported"] = float(way())
            except Exception as error:
                told["refusals"].append([package_that_raised(error), str(error) or type(error).__name__])
            else:
                logits = model(xv, training=False).numpy()
                shifted = logits - logits.max(axis=1, keepdims=True)
                likelihoods = shifted[np.arange(len(yv)), yv] - np.log(np.exp(shifted).sum(axis=1))
                told["loss"] = float(-likelihoods.mean())
                told["accuracy"] = float(np.mean(logits.argmax(axis=1) == yv))
                break
        if dt.is_chief():
            print("cell", json.dumps(told), flush=True)
