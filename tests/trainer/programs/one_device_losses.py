# SPDX-License-Identifier: Apache-2.0
"""Losses, masks, weights and metrics, as one device has them."""

import numpy as np
import tensorflow as tf
from one_device_setup import (
    BATCH,
    LEGACY,
    SOME_CLASSES,
    VALID,
    N,
    batched,
    case,
    classes,
    compiled,
    dense,
    keras,
    layers,
    losses,
    metrics,
    optimizers,
    sequences,
    train,
    weights,
    wv,
    x,
    xv,
    y,
    yv,
)


@case
def weighted_arrays():
    model = compiled(dense(), "sgd", "mse", metrics=["mae"], weighted_metrics=["mse", metrics.RootMeanSquaredError()])
    return train(model, x, y, sample_weight=weights, validation_data=(xv, yv, wv))


@case
def weighted_dataset():
    loss = losses.Huber() if LEGACY else losses.Huber(reduction="mean_with_sample_weight")
    model = compiled(dense(), "sgd", loss, weighted_metrics=["mae"])
    return train(model, batched(x, y, weights), validation_data=batched(xv, yv, wv, batch=7))


@case
def summed_loss():
    model = compiled(dense(), optimizers.SGD(0.001), losses.MeanSquaredError("sum"), weighted_metrics=["mae"])
    return train(model, batched(x, y, weights), validation_data=batched(xv, yv))


@case
def class_weights():
    names = [metrics.SparseCategoricalAccuracy(), metrics.SparseTopKCategoricalAccuracy(2)]
    model = compiled(dense(units=3, activation="softmax"), "sgd", "sparse_categorical_crossentropy", metrics=names)
    return train(model, x, classes, class_weight=SOME_CLASSES, validation_data=(xv, classes[:VALID]))


@case
def class_weights_of_one_hot_rows():
    rows = keras.utils.to_categorical(classes, 3)
    model = compiled(
        dense(units=3, activation="softmax"),
        "sgd",
        "categorical_crossentropy",
        weighted_metrics=[metrics.AUC(name="area")],
    )
    return train(model, batched(x, rows), class_weight={0: 0.2, 1: 1.5, 2: 3.0})


def masked(loss, **arguments):
    recurrent = layers.GRU(4, return_sequences=True)
    stack = [keras.Input((6, 3)), layers.Masking(0.0), recurrent, layers.Dense(1)]
    return compiled(keras.Sequential(stack), optimizers.SGD(0.1), loss, **arguments)


@case
def masks():
    model = masked("mse", metrics=["mae"], weighted_metrics=["mse"])
    targets = sequences.sum(-1, keepdims=True)
    return train(model, sequences, targets, validation_data=(sequences[:VALID], targets[:VALID] + 1))


@case
def masks_and_weights():
    loss = losses.MeanAbsoluteError() if LEGACY else losses.MeanAbsoluteError(reduction="mean_with_sample_weight")
    model = masked(loss, weighted_metrics=["mse"])
    targets, each = sequences.sum(-1, keepdims=True), np.abs(sequences[..., 0]) + 0.5
    held_out = (sequences[:VALID], targets[:VALID], each[:VALID])
    return train(model, batched(sequences, targets, each), validation_data=held_out)


@case
def many_inputs_and_outputs():
    left, right = keras.Input((5,), name="left"), keras.Input((5,), name="right")
    joined = layers.Concatenate()([layers.Dense(4, "relu")(left), layers.Dense(3)(right)])
    outputs = {"value": layers.Dense(1, name="value")(joined), "kind": layers.Dense(3, "softmax", name="kind")(joined)}
    model = keras.Model({"left": left, "right": right}, outputs)
    compiled(
        model,
        optimizers.SGD(0.01),
        {"value": losses.MeanSquaredError("sum"), "kind": "sparse_categorical_crossentropy"},
        loss_weights={"value": 0.1, "kind": 2.0},
        metrics={"kind": ["accuracy"]},
        weighted_metrics={"value": ["mae"]},
    )
    data = ({"left": x, "right": x[::-1].copy()}, {"value": y, "kind": classes})
    each = {"value": weights, "kind": weights[::-1].copy()}
    return train(model, *data, sample_weight=each, validation_data=batched(*data, each, batch=9))


@case
def list_of_outputs():
    inputs = [keras.Input((5,)), keras.Input((5,))]
    joined = layers.Add()(inputs)
    model = keras.Model(inputs, [layers.Dense(1, name="a")(joined), layers.Dense(1, name="b")(joined)])
    compiled(model, optimizers.SGD(0.01), ["mse", "mae"], metrics=[["mae"], ["mse"]])
    nothing = dict.fromkeys(("class_weight", "validation_data", "steps_per_epoch", "validation_steps", "callbacks"))
    return train(model, [x, x[::-1].copy()], [y, -y], sample_weight=weights, **nothing)


class WithLosses(layers.Layer):
    def call(self, inputs):
        self.add_loss(0.1 * tf.reduce_mean(tf.square(inputs)))
        return inputs


@case
def added_losses_constraints_and_many_metrics():
    model = dense(
        WithLosses(), layers.Dense(4, activity_regularizer="l2", kernel_constraint="max_norm"), activation="sigmoid"
    )
    names = [metrics.AUC(name="area"), metrics.Precision(), metrics.F1Score(threshold=0.5), metrics.BinaryIoU()]
    compiled(model, optimizers.SGD(0.5), "binary_crossentropy", metrics=names)
    labels = (y > 0).astype("float32")
    return train(model, x, labels, validation_data=(xv, labels[:VALID]))


@case
def metrics_that_count():
    names = [metrics.AUC(name="area"), metrics.Precision(), metrics.F1Score(threshold=0.5), metrics.BinaryIoU()]
    model = compiled(dense(activation="sigmoid"), optimizers.SGD(0.5), "binary_crossentropy", metrics=names)
    labels = (y > 0).astype("float32")
    return train(model, x, labels, validation_data=(xv, labels[:VALID]))


class OwnLoss(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(1, kernel_regularizer="l2")

    def call(self, inputs):
        return self.inner(inputs)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return tf.reduce_mean(sample_weight[:, None] * (y_pred - y) ** 2) + tf.add_n(self.losses)


@case
def own_compute_loss_and_loss_that_is_one_number():
    first = train(compiled(OwnLoss(), "sgd", None, metrics=["mae"]), x, y, sample_weight=weights)
    keras.utils.set_random_seed(3)  # replicas that build a tf_keras model as they call it draw seeds of their own
    model = compiled(dense(), "sgd", lambda y, y_pred: tf.reduce_mean((y_pred - y) ** 2))
    return {"own": first, "number": train(model, x, y)}


class OwnStep(keras.Sequential):
    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(inputs, training=True) - targets) ** 2)
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.weights), self.weights, strict=True))
        return {"loss": loss, "largest": tf.reduce_max(targets)}


@case
def own_train_step():
    found = {}
    for size in (BATCH, 2 * N):
        model = compiled(OwnStep([keras.Input((5,)), layers.Dense(1)]), "sgd", None)
        found[size] = train(model, x, y, batch_size=size)
    return found


class OwnMetrics(keras.Model):
    """Reports what it computes of its metrics' states."""

    def __init__(self):
        super().__init__()
        self.inner, self.error = layers.Dense(1), metrics.MeanAbsoluteError(name="error")

    def call(self, inputs):
        return self.inner(inputs)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        self.error.update_state(y, y_pred, sample_weight)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def get_metrics_result(self):
        found = super().get_metrics_result()
        return found | {"square": self.error.result() ** 2}


@case
def own_metrics():
    return train(compiled(OwnMetrics(), "sgd", "mse", metrics=["mae"]), x, y, validation_data=(xv, yv))
