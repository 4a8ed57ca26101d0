# SPDX-License-Identifier: Apache-2.0
"""Models with a `train_step` of their own, as one device reports them: Keras's guides, and whatever a step may return.

Noise is computed of the rows that it is for, so that a row has the same wherever it is.
"""

import numpy as np
import tensorflow as tf
from one_device_setup import (
    LEGACY,
    VALID,
    batched,
    case,
    compiled,
    keras,
    layers,
    losses,
    metrics,
    optimizers,
    sequences,
    train,
    weights,
    x,
    xv,
    y,
    yv,
)

LATENT = 3
MIX = np.random.default_rng(5).normal(size=(5, LATENT)).astype("float32")


def noise_of(rows):
    return tf.sin(9.0 * rows @ MIX)


class Gan(keras.Model):
    """Two models, two optimizers and two trackers, and no `call`."""

    def __init__(self):
        super().__init__()
        self.discriminator = keras.Sequential([keras.Input((5,)), layers.Dense(4, "tanh"), layers.Dense(1)])
        self.generator = keras.Sequential([keras.Input((LATENT,)), layers.Dense(4, "tanh"), layers.Dense(5)])
        self.d_tracker, self.g_tracker = metrics.Mean(name="d_loss"), metrics.Mean(name="g_loss")

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile(jit_compile=False)
        self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn

    @property
    def metrics(self):
        return [self.d_tracker, self.g_tracker]

    def train_step(self, real):
        real = real[0] if isinstance(real, tuple) else real
        count = tf.shape(real)[0]
        latent = noise_of(real)
        both = tf.concat([self.generator(latent), real], 0)
        labels = tf.concat([tf.ones((count, 1)), tf.zeros((count, 1))], 0)
        labels += 0.05 * tf.abs(noise_of(both)[:, :1])
        with tf.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(both))
        found = self.discriminator.trainable_weights
        self.d_optimizer.apply_gradients(zip(tape.gradient(d_loss, found), found, strict=True))
        with tf.GradientTape() as tape:
            g_loss = self.loss_fn(tf.zeros((count, 1)), self.discriminator(self.generator(-latent)))
        found = self.generator.trainable_weights
        self.g_optimizer.apply_gradients(zip(tape.gradient(g_loss, found), found, strict=True))
        self.d_tracker.update_state(d_loss)
        self.g_tracker.update_state(g_loss)
        return {"d_loss": self.d_tracker.result(), "g_loss": self.g_tracker.result()}


@case
def guide_gan():
    model = Gan()
    model.compile(optimizers.Adam(0.02), optimizers.SGD(0.1), losses.BinaryCrossentropy(from_logits=True))
    return train(model, x)


class Vae(keras.Model):
    """An encoder with two heads, a sampling and a decoder; three trackers."""

    def __init__(self):
        super().__init__()
        inputs = keras.Input((5,))
        hidden = layers.Dense(4, "tanh")(inputs)
        self.encoder = keras.Model(inputs, [layers.Dense(2)(hidden), layers.Dense(2)(hidden)])
        self.decoder = keras.Sequential([keras.Input((2,)), layers.Dense(5, "sigmoid")])
        self.total_loss_tracker = metrics.Mean(name="total_loss")
        self.reconstruction_loss_tracker = metrics.Mean(name="reconstruction_loss")
        self.kl_loss_tracker = metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.reconstruction_loss_tracker, self.kl_loss_tracker]

    def train_step(self, data):
        data = data[0] if isinstance(data, tuple) else data
        target = tf.sigmoid(data)
        with tf.GradientTape() as tape:
            mean, log_variance = self.encoder(data)
            rebuilt = self.decoder(mean + tf.exp(0.5 * log_variance) * noise_of(data)[:, :2])
            each = losses.binary_crossentropy(target[..., None], rebuilt[..., None])
            reconstruction = tf.reduce_mean(tf.reduce_sum(each, 1))
            kl = -0.5 * (1 + log_variance - tf.square(mean) - tf.exp(log_variance))
            kl = tf.reduce_mean(tf.reduce_sum(kl, 1))
            total = reconstruction + kl
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(total, found), found, strict=True))
        self.total_loss_tracker.update_state(total)
        self.reconstruction_loss_tracker.update_state(reconstruction)
        self.kl_loss_tracker.update_state(kl)
        return {
            "loss": self.total_loss_tracker.result(),
            "reconstruction_loss": self.reconstruction_loss_tracker.result(),
            "kl_loss": self.kl_loss_tracker.result(),
        }


@case
def guide_vae():
    found = {}
    for name, optimizer in {"sgd": optimizers.SGD(0.05), "adam": optimizers.Adam(0.02, global_clipnorm=0.3)}.items():
        model = Vae()
        model.compile(optimizer=optimizer, jit_compile=False)
        found[name] = train(model, x)
    return found


class Guide(keras.Sequential):
    """Its steps update the compiled metrics, or one of its own, as the guide to `fit` does."""

    def count(self, loss, targets, y_pred, sample_weight):
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(targets, y_pred, sample_weight=sample_weight)
        return {metric.name: metric.result() for metric in self.metrics}

    def parts(self, data):
        return (*data, None) if len(data) == 2 else data

    def train_step(self, data):
        inputs, targets, each = self.parts(data)
        with tf.GradientTape() as tape:
            y_pred = self(inputs, training=True)
            loss = self.compute_loss(y=targets, y_pred=y_pred, sample_weight=each)
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        return self.count(loss, targets, y_pred, each)

    def test_step(self, data):
        inputs, targets, each = self.parts(data)
        y_pred = self(inputs, training=False)
        loss = self.compute_loss(y=targets, y_pred=y_pred, sample_weight=each)
        return self.count(loss, targets, y_pred, each)


def of(kind, *, loss="mse", rate=0.05, units=1, **arguments):
    stack = [keras.Input((5,)), layers.Dense(4, "tanh", kernel_regularizer="l2"), layers.Dense(units)]
    return compiled(kind(stack), optimizers.SGD(rate), loss, **arguments)


@case
def guide_steps():
    """Of Keras 3: tf_keras makes compiled metrics too late for such steps."""
    held_out = (xv, yv)
    found = {"metrics": train(of(Guide, metrics=["mae"]), x, y, validation_data=held_out)}
    found["weights"] = train(of(Guide, metrics=["mae"]), x, y, sample_weight=weights, validation_data=held_out)
    found["sum"] = train(of(Guide, loss=losses.MeanSquaredError("sum"), rate=0.001), batched(x, y))
    seen = []
    calls = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: seen.append(("begin", batch)),
        on_train_batch_end=lambda batch, logs: seen.append(("end", *sorted(logs.items()))),
    )
    several = of(Guide, metrics=["mae"], steps_per_execution=3)
    found["several"] = train(several, batched(x, y, batch=8), callbacks=[calls], validation_data=held_out)
    stack = [keras.Input((6, 3)), layers.Masking(0.0), layers.GRU(4, return_sequences=True), layers.Dense(1)]
    masked = compiled(Guide(stack), optimizers.SGD(0.1), "mse", metrics=["mae"])
    return found | {"seen": seen, "masks": train(masked, sequences, sequences.sum(-1, keepdims=True))}


class Returns(keras.Sequential):
    """Returns what is no metric, nested, and metrics under other names."""

    def __init__(self, stack):
        super().__init__(stack)
        self.error, self.share = metrics.MeanAbsoluteError(name="error"), metrics.Mean(name="share")

    def report(self, loss, targets, y_pred):
        self.error.update_state(targets, y_pred)
        self.share.update_state(tf.reduce_mean(tf.cast(targets > 0, tf.float32)))
        return {
            "total": loss,
            "error so far": self.error.result(),
            "nested": {"share so far": self.share.result(), "constant": 2.0, "whole": tf.constant(3)},
            "largest": tf.reduce_max(targets),
            "smallest": tf.reduce_min(tf.squeeze(y_pred, 1)),
            "sum": tf.reduce_sum(targets),
            "penalty": tf.reduce_sum(tf.stack(self.losses)),
            "rows": tf.shape(targets)[0],
            "quarter": tf.reduce_mean(targets) / 4,
        }

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            y_pred = self(inputs, training=True)
            loss = tf.reduce_mean((y_pred - targets) ** 2) + tf.add_n(self.losses)
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        return self.report(loss, targets, y_pred)

    def test_step(self, data):
        inputs, targets = data
        y_pred = self(inputs, training=False)
        return self.report(tf.reduce_mean((y_pred - targets) ** 2), targets, y_pred)


@case
def returned_values():
    seen = []
    calls = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: seen.append(sorted(logs.items())),
    )
    model = of(Returns, loss=None, steps_per_execution=3)
    nested = {} if LEGACY else {"callbacks": [calls]}  # tf_keras hands callbacks dicts within dicts
    found = train(model, x, y, validation_data=(xv, yv), **nested)
    if LEGACY:
        found["history"] = {
            key.replace("nested", "") + name: number
            for key, values in found["history"].items()
            for each in values
            for name, number in (each.items() if isinstance(each, dict) else [("", each)])
        }
    return found | {"seen": seen}


class OnlyLoss(keras.Sequential):
    """Returns under the name of a metric that it never updates: Keras 3's history has the metric's zero."""

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x=inputs, y=targets, y_pred=self(inputs, training=True))
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        return {"loss": loss}


@case
def step_that_updates_nothing():
    seen = []
    calls = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append((batch, logs["loss"])))
    return train(of(OnlyLoss), x, y, validation_data=(xv[:VALID], yv), callbacks=[calls]) | {"seen": seen}


class Clips(keras.Sequential):
    """Clips gradients by itself, and takes no step that would be too large."""

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(inputs, training=True) - targets) ** 2)
        found = self.trainable_weights
        gradients, norm = tf.clip_by_global_norm(tape.gradient(loss, found), 0.5)
        gradients = [tf.where(norm < 5.5, tf.convert_to_tensor(each), 0.0) for each in gradients]
        self.optimizer.apply_gradients(zip(gradients, found, strict=True))
        return {"error": loss}


class ClipsTables(keras.Sequential):
    """Clips the gradient of a table, which stays one of slices."""

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(inputs, training=True) - targets) ** 2)
        found = self.trainable_weights
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, found), 0.2)
        self.optimizer.apply_gradients(zip(gradients, found, strict=True))
        return {"error": loss}


@case
def step_that_clips():
    words = np.random.default_rng(11).integers(0, 9, (len(x), 4))
    stack = [keras.Input((4,), dtype="int32"), layers.Embedding(9, 3), layers.Flatten(), layers.Dense(1)]
    adam = optimizers.Adam(0.02)
    return {
        "dense": train(of(Clips, loss=None), x, y),
        "table": train(compiled(ClipsTables(stack), adam, None), words, y),
    }


class MakesVariables(keras.Sequential):
    """Makes variables at its first call: in a function, and in the step."""

    factor = count = None

    @tf.function
    def faded(self, loss):
        if self.factor is None:
            self.factor = tf.Variable(2.0, trainable=False)
        self.factor.assign(0.9 * self.factor)
        return self.factor * loss

    def train_step(self, data):
        inputs, targets = data
        if self.count is None:
            self.count = tf.Variable(lambda: tf.ones([]), trainable=False)
        self.count.assign(1.0 + self.count)
        with tf.GradientTape() as tape:
            loss = self.faded(tf.reduce_mean((self(inputs, training=True) - targets) ** 2))
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        return {"faded": loss, "factor": self.factor, "count": self.count}


@case
def step_that_makes_variables():
    return train(of(MakesVariables, loss=None), x, y)
