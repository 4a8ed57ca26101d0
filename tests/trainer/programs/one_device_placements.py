# SPDX-License-Identifier: Apache-2.0
"""Steps, losses and metrics that do more with numbers of their rows than reduce them, as one device has them."""

import numpy as np
import tensorflow as tf
from one_device_setup import BATCH, case, compiled, keras, layers, metrics, optimizers, sequences, train, x, y

import dtjob_trainer as dt

rows, targets = x[:54], y[:54]


def dense(units=1, kind=None, **arguments):
    stack = [keras.Input((5,)), layers.Dense(4, "tanh"), layers.Dense(units)]
    return (kind or keras.Sequential)(stack, **arguments)


def fitted(step, units=1, **arguments):
    """A model whose train_step is `step(model, x, y)`."""

    class Stepping(keras.Sequential):
        def train_step(self, data):
            return step(self, *data)

    model = dense(units, Stepping)
    model.compile(optimizers.SGD(0.05), jit_compile=False, **arguments)
    return train(model, rows, targets)


def squared(y_true, y_pred):
    return tf.reduce_mean((y_pred - y_true) ** 2)


def taken(model, inputs, wanted):
    """The loss of the rows, and its gradients by the weights."""
    with tf.GradientTape() as tape:
        loss = squared(wanted, model(inputs, training=True))
    return loss, tape.gradient(loss, model.trainable_variables)


def norm_of(gradients):
    return tf.linalg.global_norm(gradients)


@case
def gradients_used_otherwise():
    def descends(model, inputs, wanted):
        loss, gradients = taken(model, inputs, wanted)
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
        return {"loss": loss, "norm": norm_of(gradients)}

    def climbs_first(model, inputs, wanted):  # sharpness-aware minimisation
        found = model.trainable_variables
        loss, gradients = taken(model, inputs, wanted)
        steps = [0.05 * each / (norm_of(gradients) + 1e-12) for each in gradients]
        for variable, step in zip(found, steps, strict=True):
            variable.assign_add(step)
        _, gradients = taken(model, inputs, wanted)
        for variable, step in zip(found, steps, strict=True):
            variable.assign_sub(step)
        model.optimizer.apply_gradients(zip(gradients, found, strict=True))
        return {"loss": loss, "norm": norm_of(gradients)}

    def against(model, inputs, wanted):  # adversarial rows
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = squared(wanted, model(inputs, training=True))
        by_rows = tape.gradient(loss, inputs)
        _, gradients = taken(model, inputs + 0.3 * by_rows, wanted)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return {"loss": loss, "largest": tf.reduce_max(tf.abs(by_rows))}

    return {each.__name__: fitted(each) for each in (descends, climbs_first, against)}


@case
def updates_in_branches():
    def accumulates(model, inputs, wanted):
        loss, gradients = taken(model, inputs, wanted)

        def go():
            model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return tf.constant(1.0)

        large = norm_of(gradients) > 1.0
        return {"loss": loss, "went": tf.cond(large, go, lambda: tf.constant(0.0))}

    return fitted(accumulates)


@case
def states_of_losses():
    level, steps = tf.Variable(1.0), tf.Variable(0, dtype=tf.int64)

    def levelled(y_true, y_pred):
        each = tf.reduce_mean(tf.square(y_true - y_pred), -1)
        level.assign(0.5 * level + 0.5 * tf.reduce_mean(each))
        return each / level

    def switching(y_true, y_pred):
        each = tf.reduce_mean(tf.square(y_true - y_pred), -1)
        hard = tf.reduce_mean(tf.math.top_k(each, 2).values) if len(each.shape) else each
        return tf.where(steps > 0, hard, tf.reduce_mean(each))

    count = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: steps.assign_add(1))
    found = {"level": train(compiled(dense(), optimizers.SGD(0.05), levelled), rows, targets)}
    found["levels"] = float(level.numpy())
    found["switch"] = train(compiled(dense(), optimizers.SGD(0.05), switching), rows, targets, callbacks=[count])
    return found


@case
def rows_in_metrics():
    accuracy = metrics.SparseCategoricalAccuracy(name="accuracy")
    largest = metrics.Mean(name="largest")

    class Contrasts(keras.Sequential):
        @property
        def metrics(self):
            return [accuracy, largest]

        def train_step(self, data):
            inputs, _ = data
            labels = tf.range(tf.shape(inputs)[0])
            with tf.GradientTape() as tape:
                found = self(inputs, training=True)
                scores = tf.matmul(found, found, transpose_b=True)
                loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            accuracy.update_state(labels, scores)
            largest.update_state(tf.reduce_max(scores))
            return {"c_loss": loss, "accuracy": accuracy.result(), "twice": 2.0 * largest.result()}

    model = dense(3, Contrasts)
    model.compile(optimizers.SGD(0.05), jit_compile=False)
    return train(model, rows, targets)


def of_unlike_length():
    """Beside each batch of rows, 7 others that belong to all of them."""
    beside = tf.random.stateless_uniform([7, 5], [1, 2])
    data = tf.data.Dataset.from_tensor_slices((rows[: 2 * BATCH], targets[: 2 * BATCH])).batch(
        BATCH, drop_remainder=True
    )
    return data.map(lambda inputs, wanted: ({"rows": inputs, "beside": beside}, wanted))


@case
def parts_of_unlike_length():
    class Adds(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = layers.Dense(1, kernel_initializer="ones")

        def call(self, both, training=False):
            return self.inner(both["rows"]) + tf.reduce_mean(self.inner(both["beside"]))

    return train(compiled(Adds(), optimizers.SGD(0.05), "mse"), of_unlike_length())


@case
def metrics_of_all_rows():
    """Losses as metrics, metrics along the rows, and labels that are binary in some shares alone."""
    losses, several = keras.losses, (rows[:, :3] > 0).astype("float32")
    signs = np.sign(np.round(rows[:, :1]))
    whole = [losses.MeanSquaredError(name="squares"), losses.BinaryCrossentropy(name="entropy")]
    whole += [metrics.MeanMetricWrapper(losses.MeanAbsoluteError("sum"), name="sum"), metrics.CosineSimilarity(axis=0)]
    if hasattr(losses, "dice"):  # Keras 3
        whole += [losses.Dice(name="overlap"), metrics.MeanMetricWrapper(losses.dice, name="dice")]
        whole += [losses.Tversky(name="tversky"), metrics.PearsonCorrelation(axis=0)]
    hinges = [metrics.Hinge(), metrics.SquaredHinge()]
    return {
        "several": train(compiled(dense(3), optimizers.SGD(0.05), "mse", metrics=whole), rows, several),
        "hinges": train(compiled(dense(), optimizers.SGD(0.05), "mse", metrics=hinges), rows, signs),
    }


@case
def own_layers_in_wrappers():
    class Centred(layers.Layer):
        def call(self, inputs):
            self.add_loss(0.001 * tf.reduce_sum(tf.abs(inputs)))
            return inputs - tf.reduce_mean(inputs, 0)

    stack = [keras.Input((6, 3)), layers.TimeDistributed(Centred()), layers.Flatten(), layers.Dense(1)]
    return train(compiled(keras.Sequential(stack), optimizers.SGD(0.05), "mse"), sequences, y)


@case
def layers_of_all_rows():
    """Layers of Keras that use other rows, by a function of the program or by an axis; and a function of tf_keras."""

    def centred(values):
        return tf.tanh(values - tf.reduce_mean(values, 0, keepdims=True))

    kinds = {
        "dense": [layers.Dense(4, centred)],
        "activation": [layers.Dense(4), layers.Activation(centred)],
        "function": [layers.Reshape((5, 1)), layers.LSTM(4)],
        "recurrent": [layers.Reshape((5, 1)), layers.LSTM(4, activation=centred)],
        "units": [layers.Dense(4), layers.UnitNormalization(axis=0)],
        "shares": [layers.Dense(4), layers.Softmax(axis=0)],
        "shares by the last axis but one": [layers.Dense(4), layers.Softmax(axis=-2)],
        "masked": [
            layers.Reshape((5, 1)), layers.Masking(), layers.LSTM(4, activity_regularizer=keras.regularizers.L2(0.01))
        ],
    }  # fmt: skip
    found = {}
    for name, inner in kinds.items():
        model = keras.Sequential([keras.Input((5,)), *inner, layers.Dense(1)])
        found[name] = train(compiled(model, optimizers.SGD(0.05), "mse"), rows, targets)
    return found


@case
def loops_beside_rows():
    """Gradients by several tapes of what loops compute, which TensorFlow calls as functions."""

    def recurs(model, inputs, wanted):
        kernel = model.trainable_variables[0]

        def more(state, values):
            return tf.tanh(values[:, None] * state + inputs @ kernel)

        with tf.GradientTape(persistent=True) as tape:
            with tf.GradientTape() as inner:
                states = tf.scan(more, tf.transpose(inputs), inputs @ kernel)
                looped = tf.reduce_mean(states[-1] ** 2)
            slope = tf.reduce_mean(inner.gradient(looped, kernel))
            mapped = tf.reduce_mean(tf.map_fn(lambda row: tf.tanh(row[None] @ kernel), inputs) ** 2)
            loss = squared(wanted, model(inputs, training=True)) + looped + mapped + slope**2
        found = model.trainable_variables
        model.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        parts = {"looped": looped, "mapped": mapped, "slope": slope}
        norms = {f"norm of {name}": tf.norm(tape.gradient(each, kernel)) for name, each in parts.items()}
        return {"loss": loss} | parts | norms

    return fitted(recurs)


@case
def noise_of_rows():
    """How many pairs of rows get the same random numbers, and by how much numbers that belong to no rows differ between
    replicas: 0, as on one device."""
    dropout, dropout_of_one = layers.Dropout(0.5), layers.Dropout(0.5, noise_shape=(1, None))
    generator = tf.random.Generator.from_seed(5)
    seeds = keras.random.SeedGenerator(4) if hasattr(keras, "random") else None

    def draws(model, inputs, wanted):
        count = tf.shape(inputs)[0]
        noise = {
            "dropout": dropout(tf.ones([count, 64]), training=True),
            "drawn": tf.random.normal([count, 64]),
            "drawn by a seed": tf.random.stateless_uniform([count, 64], [1, 2]),
            "drawn by a generator": generator.normal([count, 64]),
        }
        if seeds is not None:
            noise["drawn by keras"] = keras.random.normal([count, 64], seed=seeds)
        _, gradients = taken(model, inputs, wanted)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        found = {name: tf.reduce_sum(tf.cast(same_rows(each), tf.float32)) for name, each in noise.items()}
        numbers = {
            "none of rows": tf.random.uniform([], 0, count, tf.int32),
            "of a mean": tf.random.gamma([], 1.0 + tf.reduce_mean(inputs)),
            "place of rows": tf.random.uniform([5], 0, count * 50, tf.int32)[0],
            "of a generator": generator.normal([]),
            "of one mask": dropout_of_one(tf.ones([count, 64]), training=True)[0, 0],
        }
        twice = [tf.random.uniform([], seed=9) for _ in range(2)]
        found |= {name: others(tf.cast(each, tf.float32), inputs) for name, each in numbers.items()}
        return found | {"seeds": twice[0] - twice[1]}

    def others(number, inputs):
        numbers = dt.over_all_rows(lambda rows: rows, inputs[:, 0] * 0.0 + number)
        return tf.reduce_max(numbers) - tf.reduce_min(numbers)

    def same_rows(noise):
        return tf.reduce_all(noise[:, None] == noise[None], -1) & ~tf.cast(tf.eye(tf.shape(noise)[0]), tf.bool)

    return fitted(draws)["history"]


@case
def temporal_classes():
    if not hasattr(keras.losses, "CTC"):
        return None
    labels = np.stack([np.ones(len(sequences)), np.full(len(sequences), 2)], 1).astype("int32")
    model = keras.Sequential([keras.Input((6, 3)), layers.Dense(4, "tanh"), layers.Dense(4)])
    return train(compiled(model, optimizers.SGD(0.05), keras.losses.CTC()), sequences, labels)
