# SPDX-License-Identifier: Apache-2.0
"""Ragged and sparse rows: widths, numbers of rows and values, and losses of all values, as one device has them."""

import numpy as np
import tensorflow as tf
from one_device_setup import batched, case, compiled, keras, layers, optimizers, random, train, x, y

import dtjob_trainer as dt

rows, targets = x[:41], y[:41]
"""The last batch has one row, so that other replicas have none."""


class Levels(keras.Model):
    """A number for each loss, which is trained by that loss of the rows and the number."""

    def __init__(self, losses):
        super().__init__()
        self.levels, self.losses_of = self.add_weight(shape=(len(losses),), initializer="zeros", name="levels"), losses
        self.built = True

    def call(self, inputs):
        return inputs

    def train_step(self, data):
        with tf.GradientTape() as tape:
            levels = tf.unstack(tf.convert_to_tensor(self.levels) + 0.5)
            found = {name: loss(data[0], w) for (name, loss), w in zip(self.losses_of.items(), levels, strict=True)}
            total = tf.add_n(list(found.values()))
        gradients = tape.gradient(total, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return found


def trained(losses, data):
    model = Levels(losses)
    model.compile(optimizers.SGD(0.05), jit_compile=False)
    return train(model, batched(data, targets))


def off(values):
    return tf.reduce_mean(tf.square(values - 1.0))


def number(value, w):
    return w * tf.cast(value, "float32") / 50.0


@case
def widths_of_all_rows():
    """What pads rows of unlike lengths to the longest of them: that of all replicas."""
    words = [f"w{number}" for number in range(20)]
    lines = [[words[number] for number in random.integers(0, 20, random.integers(1, 9))] for _ in rows]
    texts, ragged = tf.constant([[" ".join(line)] for line in lines]), tf.ragged.constant(lines)

    class Own(keras.Model):
        def __init__(self, after, places):
            super().__init__()
            self.lookup, self.embed = layers.StringLookup(vocabulary=words), layers.Embedding(22, 4)
            self.places = layers.Embedding(9, 4) if places else None
            self.after, self.out = after, layers.Dense(1)

        def call(self, inputs):
            found = self.embed(tf.ragged.map_flat_values(self.lookup, inputs).to_tensor(21))
            if self.places:
                found += self.places(tf.range(tf.shape(found)[1]))
            for layer in self.after:
                found = layer(found)
            return self.out(tf.reduce_mean(found, 1))

    class OwnLoss(Own):
        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **others):
            lengths = tf.cast(x.row_lengths(), "float32")
            return tf.reduce_mean(tf.square(y_pred - y)) + tf.reduce_mean(lengths) * tf.reduce_mean(y_pred)

    def made(name):
        tanh = [layers.Activation(lambda values: tf.tanh(values))]
        after = {"plain": [], "dense": [layers.Dense(3)], "tanh": [layers.Dense(3), *tanh]}.get(name, tanh)
        yield ragged, Own(after, name == "places")
        first = [keras.Input((1,), dtype="string"), layers.TextVectorization(vocabulary=words)]
        mean = layers.GlobalAveragePooling1D()
        yield texts, keras.Sequential([*first, layers.Embedding(22, 4), *after, mean, layers.Dense(1)])

    found = {}
    for name in ("plain", "dense", "tanh", "places"):
        for kind, (data, model) in zip(("ragged", "texts"), made(name), strict=True):
            held_out = batched(data[:20], targets[:20])
            model = compiled(model, optimizers.SGD(0.05), "mse")
            found[f"{kind}, {name}"] = train(model, batched(data, targets), validation_data=held_out)
    own = compiled(OwnLoss((), False), optimizers.SGD(0.05), None)
    return found | {"own loss": train(own, batched(ragged, targets))}


@case
def numbers_of_ragged_rows():
    lengths = np.concatenate([[5] * 27, [2] * 11, [3, 4, 6] * 3, [1, 2] * 2, [0, 6, 0]])[-41:]
    data = tf.RaggedTensor.from_row_lengths(random.normal(size=lengths.sum()).astype("float32"), lengths)

    def lengths_of(given):
        return tf.cast(given.row_lengths(), "float32")

    def attention(given, w):
        values, places = tf.exp(given.flat_values * w), given.value_rowids()
        return off(values / tf.gather(tf.math.segment_sum(values, places), places))

    def by_segments(given, w):
        kinds = (tf.math.segment_max, tf.math.segment_min, tf.math.segment_mean, tf.math.segment_prod)
        values = tf.clip_by_value(given.flat_values, -2.0, 2.0) * w
        return sum(off(kind(values, given.value_rowids())) for kind in kinds)

    def by_reductions(given, w):
        kinds = (tf.reduce_max, tf.reduce_min, tf.reduce_prod)
        return sum(off(tf.clip_by_value(kind(given * w, 1), -2.0, 2.0)) for kind in kinds)

    def embedded(given, w):
        numbers = tf.cast(tf.clip_by_value(given, 0.0, 3.0), "int64").to_sparse()
        table = tf.stack([w, w + 1.0, 2.0 * w, w - 1.0])[:, None]
        return off(tf.nn.embedding_lookup_sparse(table, numbers, None, combiner="mean"))

    def of_all(given, w):
        return off(given.flat_values * w) + number(given.nrows(), w)

    def by_places(given, w):
        places, longest = tf.ragged.range(given.row_lengths()).flat_values, given.bounding_shape()[1]
        return off(tf.math.unsorted_segment_sum(given.flat_values * w, places, longest))

    def against(given, w):  # adversarial rows
        with tf.GradientTape() as tape:
            tape.watch(given.flat_values)
            loss = off(given.to_tensor() * w)
        gradient = tf.convert_to_tensor(tape.gradient(loss, given.flat_values))
        return off((given.flat_values + 10.0 * tf.stop_gradient(gradient)) * w)

    losses = {
        "sums of places": by_places,
        "against": against,
        "mean": lambda given, w: off(given.flat_values * w),
        "largest": lambda given, w: tf.reduce_max(tf.square(given.flat_values * w - 1.0)),
        "norm": lambda given, w: tf.norm(given.flat_values * w - 1.0),
        "sorted": lambda given, w: off(tf.sort(given.flat_values)[:7] * w),
        "sums of rows": lambda given, w: off(tf.reduce_sum(given * w, 1)),
        "means of rows": lambda given, w: off(tf.reduce_sum(given * w, 1) / (1.0 + lengths_of(given))),
        "segments": by_segments,
        "reductions": by_reductions,
        "softmax": lambda given, w: off(tf.nn.softmax(given * w).flat_values),
        "attention": attention,
        "embedded": embedded,
        "values": lambda given, w: number(tf.size(given.flat_values), w),
        "rows": lambda given, w: number(given.nrows(), w),
        "longest": lambda given, w: number(tf.reduce_max(given.row_lengths()), w),
        "bounds": lambda given, w: number(tf.reduce_prod(given.bounding_shape()), w),
        "sum of lengths": lambda given, w: number(tf.reduce_sum(given.row_lengths()), w),
        "spread of lengths": lambda given, w: w * tf.math.reduce_std(lengths_of(given)),
        "mask of lengths": lambda given, w: off(number(tf.sequence_mask(given.row_lengths()), w)),
        "numbers of rows": lambda given, w: off(number(given.value_rowids(), w) * given.flat_values),
        "places in rows": lambda given, w: off(number(tf.ragged.range(given.row_lengths()).flat_values, w)),
        "splits": lambda given, w: off(number(given.row_splits, w)),
        "first two": lambda given, w: off(given[:, :2].to_tensor() * w),
        "joined": lambda given, w: off(tf.concat([given, given * 2.0], 1).flat_values * w),
        "positive": lambda given, w: off(tf.ragged.boolean_mask(given, given > 0.0).flat_values * w),
        "mapped": lambda given, w: off(tf.map_fn(tf.reduce_sum, given * w, fn_output_signature="float32")),
        "function": tf.function(of_all),
        "over all rows": lambda given, w: dt.over_all_rows(lambda rows: of_all(rows, w), given),
    }  # fmt: skip
    return trained(losses, data)


@case
def numbers_of_sparse_rows():
    data = tf.sparse.from_dense(np.where(random.uniform(size=rows.shape) < 0.5, rows, 0.0))

    def counted(given):
        return tf.math.bincount(given.indices[:, 1], minlength=5, maxlength=5, dtype="float32")

    losses = {
        "mean": lambda given, w: off(given.values * w),
        "largest": lambda given, w: tf.square(tf.reduce_max(given.values) * w - 1.0),
        "values": lambda given, w: number(tf.size(given.values), w),
        "rows": lambda given, w: number(given.dense_shape[0], w),
        "numbers of rows": lambda given, w: off(number(given.indices[:, 0], w) * given.values),
        "numbers of columns": lambda given, w: off(number(given.indices[:, 1], w) * given.values),
        "columns counted": lambda given, w: off(counted(given) * w / 50.0),
        "sums of rows": lambda given, w: off(tf.sparse.reduce_sum(given, 1) * w),
        "sums of columns": lambda given, w: off(tf.sparse.reduce_sum(given, 0) * w),
        "columns by segments": lambda given, w: off(
            tf.math.unsorted_segment_sum(given.values * w, given.indices[:, 1], given.dense_shape[1])
        ),
        "rows of columns": lambda given, w: off(
            tf.gather(tf.sparse.reduce_sum(given, 1) * w, tf.minimum(given.indices[:, 1], given.dense_shape[0] - 1))
        ),
        "columns of rows": lambda given, w: off(
            tf.sparse.sparse_dense_matmul(given, tf.sparse.reduce_sum(given, 1, keepdims=True) * w, adjoint_a=True)
        ),
        "product": lambda given, w: off(tf.sparse.sparse_dense_matmul(given, tf.ones([5, 2]) * w)),
        "transposed": lambda given, w: off(tf.sparse.sparse_dense_matmul(given, tf.sparse.to_dense(given), True) * w),
        "dense": lambda given, w: off(tf.sparse.to_dense(given) * w),
        "slice": lambda given, w: off(tf.sparse.slice(given, [0, 1], [100, 3]).values * w),
        "positive": lambda given, w: off(tf.sparse.retain(given, given.values > 0).values * w),
        "over all rows": lambda given, w: dt.over_all_rows(lambda rows: off(rows.values * w), given),
    }
    return trained(losses, data)
