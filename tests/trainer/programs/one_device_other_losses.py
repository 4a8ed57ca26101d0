# SPDX-License-Identifier: Apache-2.0
"""Losses that are no means over rows, or not known to be: sums, ratios, and rows held against other rows."""

import numpy as np
import tensorflow as tf
from one_device_setup import (
    BATCH,
    LEGACY,
    N,
    case,
    compiled,
    dense,
    keras,
    layers,
    losses,
    metrics,
    optimizers,
    random,
    train,
    weights,
    x,
    xv,
    y,
    yv,
)

labels = (y > 0).astype("float32")
tokens = random.integers(1, 9, (N, 4))
targets = (tokens * 5) % 7 + 1
for row in range(N):
    if row % BATCH >= BATCH // 2:  # the later rows of each batch have far more padding
        targets[row, 1 + row % 3 :] = 0
targets[N - 1] = 0  # the last batch has nothing else
targets[2 * BATCH + BATCH // 2 : 3 * BATCH] = 0


def sgd(rate=0.05):
    return optimizers.SGD(rate)


def fitted(loss, rate=0.05, **arguments):
    return train(compiled(dense(), sgd(rate), loss), x, y, validation_data=(xv, yv), **arguments)


def anew(**cases):
    """Each case from the same beginning."""
    found = {}
    for name, function in cases.items():
        keras.utils.set_random_seed(3)
        found[name] = function()
    return found


def absolute(y_true, y_pred):
    return tf.abs(y_true - y_pred)


class OverFixedSize(losses.Loss):
    def call(self, y_true, y_pred):
        return tf.reduce_sum(absolute(y_true, y_pred)) / BATCH


class Calls(losses.Loss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        return tf.reduce_mean(absolute(tf.cast(y_true, y_pred.dtype), y_pred))


class CallsSum(losses.Loss):
    def __call__(self, y_true, y_pred, sample_weight=None):
        return 0.1 * tf.reduce_sum(absolute(tf.cast(y_true, y_pred.dtype), y_pred))


def averaged(y_true, y_pred):
    return tf.nn.compute_average_loss(tf.reduce_sum(absolute(y_true, y_pred), 1), global_batch_size=BATCH)


def averaged_over_all(y_true, y_pred):
    return tf.nn.compute_average_loss(tf.reduce_sum(absolute(y_true, y_pred), 1))


def root(y_true, y_pred):
    return tf.sqrt(tf.reduce_mean(tf.square(y_true - y_pred)))


def contrastive(y_true, y_pred):
    """Each row against all others."""
    near = tf.cast(tf.equal(y_true > 0, tf.transpose(y_true > 0)), y_pred.dtype)
    apart = tf.abs(y_pred - tf.transpose(y_pred))
    return tf.reduce_mean(near * apart + (1 - near) * tf.nn.relu(1 - apart), 1)


def ranking(y_true, y_pred):
    better = tf.cast(y_true > tf.transpose(y_true), y_pred.dtype)
    return tf.reduce_sum(better * tf.nn.softplus(tf.transpose(y_pred) - y_pred)) / (1 + tf.reduce_sum(better))


def pairs(y_true, y_pred):
    """Scores of all rows by all rows, in one of Keras's own losses."""
    scores = y_pred * tf.transpose(y_pred)
    return losses.CategoricalCrossentropy(from_logits=True)(tf.eye(tf.shape(scores)[0]), scores)


def summed(y_true, y_pred):
    return tf.reduce_sum((y_pred - y_true) ** 2)


@case
def sums_over_rows():
    return anew(
        sum=lambda: fitted(summed, 0.002),
        fixed=lambda: fitted(OverFixedSize()),
        averaged=lambda: fitted(averaged),
        call=lambda: fitted(CallsSum(), 0.01),
    )


@case
def means_over_rows():
    return anew(
        mean=lambda: fitted(lambda y, y_pred: tf.reduce_mean((y_pred - y) ** 2)),
        each=lambda: fitted(lambda y, y_pred: tf.reduce_mean((y_pred - y) ** 2, -1)),
        averaged=lambda: fitted(averaged_over_all),
        call=lambda: fitted(Calls()),
    )


@case
def rows_against_rows():
    def with_weights():
        return train(compiled(dense(), sgd(), root), x, y, sample_weight=weights)

    return anew(
        contrastive=lambda: fitted(contrastive, 0.2),
        ranking=lambda: fitted(ranking, 0.2),
        root=lambda: fitted(root),
        weights=with_weights,
    )


def masked(y_true, logits):
    """The mean over tokens that are no padding."""
    mask = tf.cast(y_true != 0, logits.dtype)
    each = losses.sparse_categorical_crossentropy(y_true, logits, from_logits=True)
    return tf.reduce_sum(each * mask) / tf.reduce_sum(mask)


def safe_masked(y_true, logits):
    mask = tf.cast(y_true != 0, logits.dtype)
    each = losses.sparse_categorical_crossentropy(y_true, logits, from_logits=True)
    return tf.math.divide_no_nan(tf.reduce_sum(each * mask), tf.reduce_sum(mask))


def text_model(kind=keras.Sequential, **arguments):
    stack = [keras.Input((4,), dtype="int32"), layers.Embedding(9, 3), layers.Dense(9)]
    model = kind(stack)
    model.compile(sgd(0.5), jit_compile=False, **arguments)
    return model


@tf.function
def masked_by_its_numbers(y_true, logits):
    """As `masked`, in a function of its own: neither its numbers nor its list of them are among the step's own."""
    ignored = tf.reduce_any(y_true[..., None] == tf.constant([-100, 0], y_true.dtype), -1)
    mask, known = tf.cast(~ignored, logits.dtype), tf.maximum(y_true, 0)
    each = losses.sparse_categorical_crossentropy(known, logits, from_logits=True)
    return tf.math.divide_no_nan(tf.reduce_sum(each * mask), tf.reduce_sum(mask))


def weighted_by_class(y_true, logits):
    each = losses.sparse_categorical_crossentropy(y_true, logits, from_logits=True)
    of_classes = tf.gather(tf.constant([1.0] * 4 + [9.0, 0.0, 1.0, 20.0, 1.0]), tf.cast(y_true, tf.int32))
    return tf.math.divide_no_nan(tf.reduce_sum(each * of_classes), tf.reduce_sum(of_classes))


@case
def masked_means():
    full = 2 * BATCH  # later batches end in rows of padding alone
    return {
        "ignored numbers": train(text_model(loss=masked_by_its_numbers), tokens, np.where(targets == 0, -100, targets)),
        "weights of classes": train(text_model(loss=weighted_by_class), tokens, targets),
        "padding in one replica": train(text_model(loss=masked), tokens[:full], targets[:full]),
        "padding alone": train(text_model(loss=safe_masked), tokens, targets),
    }


class Endpoint(layers.Layer):
    def __init__(self, loss, **arguments):
        super().__init__(**arguments)
        self.loss_fn = loss

    def call(self, logits, targets):
        self.add_loss(self.loss_fn(targets, logits))
        return logits


def ending_in(loss, rate=0.1):
    inputs, wanted = keras.Input((5,)), keras.Input((1,))
    outputs = Endpoint(loss)(layers.Dense(1, kernel_initializer="ones", kernel_regularizer="l2")(inputs), wanted)
    model = keras.Model([inputs, wanted], outputs)
    model.compile(sgd(rate), jit_compile=False)
    held_out = ((xv, (yv > 0).astype("float32")),)
    return train(model, [x, labels], validation_data=held_out)


@case
def losses_of_layers():
    how = {"reduction": "sum"} if LEGACY else {}  # tf_keras takes no other inside a layer
    return anew(
        object=lambda: ending_in(losses.BinaryCrossentropy(from_logits=True, **how), 0.02),
        sum=lambda: ending_in(summed, 0.002),
        total=lambda: ending_in(losses.MeanSquaredError("sum"), 0.002),
        ranking=lambda: ending_in(ranking),
        root=lambda: ending_in(root),
    )


class Step(keras.Sequential):
    """A step of its own with a loss function of its own."""

    def compile(self, optimizer, loss_fn, **arguments):
        super().compile(optimizer, jit_compile=False, **arguments)
        self.loss_fn, self.tracker = loss_fn, metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.tracker]

    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            loss = self.loss_fn(targets, self(inputs, training=True))
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        loss = tf.add_n(loss) if isinstance(loss, list) else loss
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result(), "now": tf.reduce_mean(loss)}


class InFunction(Step):
    """A step that is a tf.function, whose loss is another."""

    @tf.function
    def train_step(self, data):
        return super().train_step(data)


class WithoutTape(Step):
    def train_step(self, data):
        inputs, targets = data
        loss = self.loss_fn(targets, self(inputs, training=True))
        found = self.trainable_weights
        gradients = tf.gradients(loss, [each if LEGACY else each.value for each in found])
        self.optimizer.apply_gradients(zip(gradients, found, strict=True))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


def helper(y_true, y_pred):
    return averaged(y_true, y_pred) + tf.nn.scale_regularization_loss(tf.constant(2.0))


def stepped(loss, rate=0.05, kind=Step):
    model = kind([keras.Input((5,)), layers.Dense(4, "tanh"), layers.Dense(1)])
    model.compile(sgd(rate), loss)
    return train(model, x[:54], y[:54])  # the last batch has many rows, whose loss is reported


@case
def losses_of_own_steps():
    return anew(
        mean=lambda: stepped(lambda y, y_pred: tf.reduce_mean((y_pred - y) ** 2)),
        sum=lambda: stepped(summed, 0.002),
        each=lambda: stepped(lambda y, y_pred: (y_pred - y) ** 2, 0.002),
        averaged=lambda: stepped(averaged),
        averaged_over_all=lambda: stepped(averaged_over_all),
        helper=lambda: stepped(helper),
        fixed=lambda: stepped(OverFixedSize()),
        call=lambda: stepped(Calls()),
        root=lambda: stepped(root),
        several=lambda: stepped(lambda y, y_pred: [summed(y, y_pred), averaged(y, y_pred)], 0.002),
        log=lambda: stepped(lambda y, y_pred: tf.math.log(losses.MeanSquaredError()(y, y_pred) + 1.0)),
        contrastive=lambda: stepped(lambda y, y_pred: tf.reduce_mean(contrastive(y, y_pred)), 0.2),
        ranking=lambda: stepped(ranking, 0.2),
        pairs=lambda: stepped(pairs, 0.2),
    )


def views(y_true, both):
    """Two views of each row against those of all rows; the second ones come after all first ones."""
    first, second = tf.split(both, 2)
    logits = 3.0 * tf.matmul(first, second, transpose_b=True)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(tf.shape(y_true)[0]), logits)


class Views(Step):
    """Calls its layers once, with two views of each row."""

    def train_step(self, data):
        inputs, targets = data
        return super().train_step((tf.concat([inputs, 0.8 * inputs + 0.1], 0), targets))


class EachView(layers.Layer):
    """Calls a layer with each of two views by itself."""

    def build(self, input_shape):
        self.inner = layers.Dense(3)
        self.inner.build(input_shape)

    def call(self, both):
        return tf.concat([self.inner(view) for view in tf.split(both, 2)], 0)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], 3)


def of_views(loss, rate, last=lambda: layers.Dense(3)):
    model = Views([keras.Input((5,)), layers.Dense(4, "tanh"), last()])
    model.compile(sgd(rate), loss)
    return train(model, x[:54], y[:54])


@case
def losses_of_views():
    return anew(
        pairs=lambda: of_views(lambda y, both: tf.reduce_mean(views(y, both)), 0.2),
        apart=lambda: of_views(lambda y, both: tf.reduce_mean((both - tf.concat([y, 2.0 * y], 0)) ** 2), 0.05),
        near=lambda: of_views(lambda y, both: tf.reduce_mean(tf.square(tf.subtract(*tf.split(both, 2)))), 0.05),
        root=lambda: of_views(lambda y, both: tf.sqrt(tf.reduce_mean(both**2)), 0.05),
        one_by_one=lambda: of_views(lambda y, both: tf.reduce_mean(views(y, both)), 0.2, EachView),
    )


class Computes(keras.Sequential):
    def __init__(self, stack, own_loss):
        super().__init__(stack)
        self.own_loss = own_loss

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, *args, **kwargs):
        before = super().compute_loss(x, y, y_pred, sample_weight, *args, **kwargs)
        return self.own_loss(y, y_pred) + 0.01 * before


def computed(loss, rate=0.05):
    stack = [keras.Input((5,)), layers.Dense(4, "tanh", kernel_regularizer="l2"), layers.Dense(1)]
    return train(compiled(Computes(stack, loss), sgd(rate), "mse"), x, y, validation_data=(xv, yv))


@case
def losses_in_functions():
    return anew(
        sum=lambda: stepped(tf.function(summed), 0.002, InFunction),
        root=lambda: stepped(tf.function(root), 0.05, InFunction),
        plain=lambda: stepped(tf.function(ranking), 0.2),
        compiled=lambda: fitted(tf.function(root)),
        gradients=lambda: stepped(summed, 0.002, WithoutTape),
    )


@case
def losses_of_own_compute_loss():
    return anew(
        mean=lambda: computed(lambda y, y_pred: tf.reduce_mean((y_pred - y) ** 2)),
        sum=lambda: computed(summed, 0.002),
        root=lambda: computed(root),
        pairs=lambda: computed(pairs),
    )


class Bare(keras.Model):
    """Looks its rows up in a variable, without a layer, and reports what it evaluates."""

    def __init__(self):
        super().__init__()
        self.table = self.add_weight(shape=(9, 9), initializer="glorot_uniform", name="table")
        self.built = True

    def call(self, inputs):
        return tf.gather(tf.convert_to_tensor(self.table), inputs)

    def train_step(self, data):
        inputs, wanted = data
        with tf.GradientTape() as tape:
            loss = safe_masked(wanted, tf.gather(tf.convert_to_tensor(self.table), inputs))
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        return {"total": loss}

    def test_step(self, data):
        inputs, wanted = data
        return {"total": safe_masked(wanted, self(inputs))}


@case
def losses_without_layers():
    model = compiled(Bare(), sgd(0.5), None)
    return train(model, tokens, targets, validation_data=(tokens[: 2 * BATCH], targets[: 2 * BATCH]))


@case
def some_other_losses():
    """Some of them, for every run of the tests."""
    return anew(
        step=lambda: stepped(root),
        padding=lambda: train(text_model(loss=safe_masked), tokens, targets),
        pairs=lambda: computed(pairs),
        function=lambda: stepped(tf.function(summed), 0.002, InFunction),
    )
