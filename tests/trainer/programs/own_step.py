# SPDX-License-Identifier: Apache-2.0
"""A model with its own train_step and a callback for each batch, fed from a Dataset, under any strategy."""

import argparse
import importlib

import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.process import runtime

parser = argparse.ArgumentParser()
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
package = parser.parse_args().package
keras = importlib.import_module(package)


class Own(keras.Sequential):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=x, y=y, y_pred=self(x, training=True))
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_weights), self.trainable_weights, strict=True)
        )
        return {"loss": loss, "of two": 2.0}

    def test_step(self, data):
        x, y = data
        y_pred = self(x, training=False)
        loss = self.compute_loss(x=x, y=y, y_pred=y_pred)
        return {"loss": loss, "error": tf.reduce_mean(tf.abs(y - y_pred))}


class Batches(keras.callbacks.Callback):
    losses: list[float] = []  # noqa: RUF012  # one instance a process

    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])


rows = np.random.default_rng(1).normal(size=(100, 4)).astype("float32")
targets = rows @ np.array([[1.0], [2.0], [-1.0], [0.5]], np.float32)
layers = [keras.Input((4,)), keras.layers.Dense(1)]

model = Own(layers)
model.compile(keras.optimizers.SGD(0.1), "mse")
history = dt.fit(
    model, rows, targets, batch_size=32, epochs=2, callbacks=[Batches()], validation_data=(rows[:33], targets[:33])
)
alone = dt.strategy().num_replicas_in_sync == 1
assert len(Batches.losses) == 2 * 4, Batches.losses
assert Batches.losses[-1] < Batches.losses[0]
assert history.history["of two"] == [2.0, 2.0]
assert history.history["loss"][-1] == Batches.losses[-1]  # as in Keras, of the last batch
errors = rows[32:33] @ model.get_weights()[0] + model.get_weights()[1] - targets[32:33]  # its last batch has one row
np.testing.assert_allclose(history.history["val_error"][-1], np.mean(np.abs(errors)), rtol=1e-5)
np.testing.assert_allclose(history.history["val_loss"][-1], np.mean(errors**2), rtol=1e-5)

Batches.losses.clear()
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(0.1), "mse")
dataset = tf.data.Dataset.from_tensor_slices((rows, targets)).batch(32)
history = dt.fit(model, dataset, epochs=3, callbacks=[Batches()], validation_data=dataset, scale_lr=True)
assert len(Batches.losses) == 3 * 4
losses = np.array(Batches.losses).reshape(3, 4)  # as in Keras, of the epoch so far
np.testing.assert_allclose(history.history["loss"], losses[:, -1], rtol=1e-5)
assert abs(float(model.optimizer.learning_rate.numpy()) - 0.1 * dt.strategy().num_replicas_in_sync) < 1e-6
none = None if package == "keras" else "none"
model.compile("sgd", keras.losses.MeanSquaredError(reduction=none))
try:
    dt.fit(model, rows, targets)
except ValueError as error:
    refusal = str(error)
assert f"reduction {none}" in refusal, refusal


class Pair(keras.Model):
    """Two models and two optimizers, and no `call`: as the GAN of Keras's guide."""

    def __init__(self):
        super().__init__()
        self.parts = [keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]) for _ in range(2)]
        self.mean = keras.metrics.Mean(name="mean")

    @property
    def metrics(self):
        return [self.mean]

    def compile(self, first, second):
        super().compile()
        self.first, self.others = first, {"second": second}

    def train_step(self, x):
        y = tf.reduce_sum(x, 1, keepdims=True)
        for part, optimizer in zip(self.parts, (self.first, self.others["second"]), strict=True):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((part(x, training=True) - y) ** 2)
            weights = part.trainable_weights
            optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            self.mean.update_state(loss)
        return {"mean": self.mean.result()}


class Slots(keras.callbacks.Callback):
    counts: list[int] = []  # noqa: RUF012  # one instance a process

    def on_train_begin(self, logs=None):
        self.counts += [len(adam.variables) for adam in adams]


pair, adams = Pair(), [keras.optimizers.Adam(0.1), keras.optimizers.Adam(0.05)]
pair.compile(*adams)
history = dt.fit(pair, rows, batch_size=32, epochs=5, callbacks=[Slots()])
assert history.history.keys() == {"mean"}, history.history
assert history.history["mean"][-1] < history.history["mean"][0] / 2, history.history
assert all(count >= 5 for count in Slots.counts), Slots.counts  # before any step, so that a checkpoint has them


class Guide(keras.Sequential):
    """Its steps are those of Keras's guide, of data without targets."""

    def count(self, loss, x, y_pred):
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(x, y_pred)
        return {metric.name: metric.result() for metric in self.metrics}

    def train_step(self, x):
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=x, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        return self.count(loss, x, y_pred)

    def test_step(self, x):
        y_pred = self(x, training=False)
        return self.count(self.compute_loss(y=x, y_pred=y_pred), x, y_pred)


if package == "keras":  # tf_keras makes compiled metrics too late for such steps
    model = Guide([keras.Input((4,)), keras.layers.Dense(4)])
    model.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
    validation = tf.data.Dataset.from_tensor_slices(rows[:33]).batch(8)
    history = dt.fit(model, rows, batch_size=32, epochs=2, validation_data=validation)
    assert history.history.keys() == {"loss", "mae", "val_loss", "val_mae"}, history.history
    assert history.history["mae"][1] < history.history["mae"][0]
    error = np.mean(np.abs(model(rows[:33], training=False).numpy() - rows[:33]))
    np.testing.assert_allclose(history.history["val_mae"][-1], error, rtol=1e-5)


class Noise(keras.layers.Layer):
    """Adds what a function draws."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw

    def call(self, inputs):
        return inputs + self.draw(tf.shape(inputs))


untracked = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)  # as Keras 3's layers track none of TensorFlow's
draws = {"approximate": [tf.random.normal], "exact": [lambda shape: tf.random.stateless_normal(shape, [1, 2])]}
if package == "keras":
    draws["approximate"].append(lambda shape: untracked.assign_add(1.0))
    draws["exact"].append(keras.random.normal)
for resume, functions in draws.items():
    for function in functions:
        model = keras.Sequential([keras.Input((4,)), Noise(function), keras.layers.Dropout(0.1), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        dt.fit(model, rows, targets, batch_size=32)
        assert runtime.current().progress.status["resume"] == resume, function


class Knowing(keras.Sequential):
    """Its step is written for `tf.distribute`: replicas' gradients add up to one device's."""

    def train_step(self, data):
        x, y = data
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x, training=True) - y) ** 2) / replicas
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


class Printing(Own):
    """Its step is that of one device, and its class names replicas for another purpose."""

    def describe(self):
        return f"{tf.distribute.get_strategy().num_replicas_in_sync} replicas"


whole = tf.data.Dataset.from_tensor_slices((rows[:96], targets[:96])).batch(32, drop_remainder=True)
found = []
for kind, scaled in ((Own, None), (Knowing, None), (Printing, False)):
    model = kind([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    dt.fit(model, whole, epochs=2, scaled_step=scaled)
    found.append(model.get_weights())
for mine, theirs, told in zip(*found, strict=True):
    np.testing.assert_allclose(mine, told, rtol=1e-5)
    np.testing.assert_allclose(mine, theirs, rtol=1e-5)
if not alone:
    model = Knowing([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    try:
        dt.fit(model, dataset)  # its last batch is not full
    except ValueError as error:
        refusal = str(error)
    assert "drop_remainder=True" in refusal, refusal
    dt.fit(model, rows, targets, batch_size=32)
    dt.fit(model, rows, targets, batch_size=25)
if dt.is_chief():
    print("all well")
