# SPDX-License-Identifier: Apache-2.0
"""Computes expressions of made-up rows on one device, and by placements on two replicas that have 3 and 5 of the rows,
or 0 (one stands in) and 8. Prints the differences of values and gradients by name, as JSON."""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.placement import rules, tracing, tracker
from dtjob_trainer.placement.shard import Shard

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
TWO = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
tracing.install()
random = np.random.default_rng(0)
x, y = (random.uniform(0.1, 0.9, (8, 4)).astype("float32") for _ in range(2))
ids = random.integers(0, 4, 8).astype("int32")
image = random.uniform(0.1, 0.9, (8, 4, 4, 3)).astype("float32")
kernel = random.uniform(-0.5, 0.5, (2, 2, 3, 3)).astype("float32")
square = random.uniform(-1.0, 1.0, (4, 4)).astype("float32")


def number_of(rows):
    return tf.shape(rows)[0]


def queries(x, y):
    return tf.matmul(x, y, transpose_b=True)


@tf.custom_gradient
def scaled_by_largest(a, b):
    largest = tf.reduce_max(a)
    return largest * b[:1], lambda dy: (tf.zeros_like(a), tf.pad(largest * dy, [[0, 3], [0, 0]]))


@tf.custom_gradient
def turned(a):
    return a * 1.0, lambda dy: dy / tf.norm(dy)


@tf.custom_gradient
def centred(a):
    return a * 1.0, lambda dy: dy - tf.reduce_mean(dy, 0)


E = {  # of rows x, y [8, 4], ids i [8], images p and weights w [4, 4]
    "mean": lambda x, y, i, p, w: tf.reduce_mean((x - y) ** 2),
    "mean of each": lambda x, y, i, p, w: tf.reduce_mean((x - y) ** 2, -1),
    "sum over rows": lambda x, y, i, p, w: tf.reduce_sum(x * y, 0),
    "largest": lambda x, y, i, p, w: tf.reduce_max(x, 0),
    "of all rows by a mapped function": lambda x, y, i, p, w: (
        dt.over_all_rows(lambda rows: tf.reduce_sum(tf.vectorized_map(tf.reduce_max, rows)), x) * w
    ),
    "of all rows by a function": lambda x, y, i, p, w: dt.over_all_rows(lambda rows: tf.sort(rows, axis=0), x) * w[0],
    "root of a mean": lambda x, y, i, p, w: tf.sqrt(tf.reduce_mean((x - y) ** 2)),
    "masked mean": lambda x, y, i, p, w: (
        tf.reduce_sum(x * tf.cast(y > 0.5, tf.float32)) / tf.reduce_sum(tf.cast(y > 0.5, tf.float32))
    ),
    "by the number of rows": lambda x, y, i, p, w: tf.reduce_sum(x) / tf.cast(number_of(x), tf.float32),
    "by half of the rows": lambda x, y, i, p, w: tf.reduce_sum(x) * tf.cast(number_of(x) // 2, tf.float32),
    "first half": lambda x, y, i, p, w: tf.reduce_mean(x[: number_of(x) // 2] ** 2),
    "every second": lambda x, y, i, p, w: tf.reduce_mean(x[::2]),
    "backwards": lambda x, y, i, p, w: tf.reduce_mean(x * y[::-1]),
    "rows against rows": lambda x, y, i, p, w: tf.reduce_mean(tf.nn.softmax(queries(x, y), -1) * queries(y, x)),
    "labels of rows": lambda x, y, i, p, w: tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(tf.range(number_of(x)), queries(x, y))
    ),
    "a loop beside rows": lambda x, y, i, p, w: (
        tf.reduce_mean(tf.scan(lambda h, e: tf.tanh(h @ w + e), tf.stack([x, y]), x)[-1] ** 2) + tf.reduce_mean(y @ w)
    ),
    "a mapped function beside rows": lambda x, y, i, p, w: (
        tf.reduce_mean(tf.map_fn(lambda row: tf.tanh(tf.tensordot(row, w, 1)), x) ** 2) + tf.reduce_mean(y @ w)
    ),
    "one of all rows": lambda x, y, i, p, w: tf.one_hot(tf.range(number_of(x)), number_of(x)) @ y,
    "one for each pair of rows": lambda x, y, i, p, w: tf.eye(number_of(x), number_of(x)) * queries(x, y),
    "zeros for each pair of rows": lambda x, y, i, p, w: tf.zeros([number_of(x), number_of(y)]) + queries(x, y),
    "shape of each pair of rows": lambda x, y, i, p, w: tf.reduce_mean(
        tf.reshape(queries(x, y), tf.concat([tf.zeros([0], tf.int32), tf.shape(x)[:1], tf.shape(y)[:1]], 0)) ** 2,
        axis=1,
        keepdims=True,
    ),
    "shape with its entries exchanged": lambda x, y, i, p, w: (
        tf.transpose(tf.zeros(tf.gather(tf.shape(x), [1, 0])) + tf.transpose(x)) * y
    ),
    "zeros in each row": lambda x, y, i, p, w: tf.zeros([tf.shape(x)[-1]]) + tf.ones([tf.gather(tf.shape(x), 1)]) * x,
    "part of a shape": lambda x, y, i, p, w: (
        tf.ones(tf.slice(tf.shape(x), [1], [1])) + tf.ones(tf.shape(x)[:1])[:, None] * x
    ),
    "one row for each half": lambda x, y, i, p, w: tf.tile(w[:1], [number_of(x) // 2, 1]) + x[: number_of(x) // 2],
    "one row fewer": lambda x, y, i, p, w: tf.zeros([number_of(x) - 1, 1]) + x[1:] - x[:-1],
    "rows times rows": lambda x, y, i, p, w: (
        tf.zeros([number_of(x) * number_of(y), 1]) + tf.reshape(queries(x, y), [-1, 1])
    ),
    "gradient of its own by weights": lambda x, y, i, p, w: scaled_by_largest(y, w),
    "gradient of its own with a norm": lambda x, y, i, p, w: turned(x) * y,
    "gradient of its own with a mean": lambda x, y, i, p, w: centred(x) * y,
    "gradient of its own of a sum": lambda x, y, i, p, w: centred(tf.reduce_sum(x, 0)[None]) * w,
    "temporal classes": lambda x, y, i, p, w: keras.ops.ctc_loss(
        keras.ops.ones((number_of(x), 2), "int32"), x[:, :, None] * w, 2 * tf.ones_like(i), 4 * tf.ones_like(i)
    )[:, None],
    "positions from one": lambda x, y, i, p, w: tf.reduce_sum(1.0 / tf.cast(tf.range(1, number_of(x)), tf.float32)) * w,
    "every second position": lambda x, y, i, p, w: tf.gather(x, tf.range(0, number_of(x), 2)) * w[0],
    "whole part of a mean": lambda x, y, i, p, w: w * tf.cast(tf.cast(tf.reduce_mean(x * 10), tf.int32), tf.float32),
    "mean of whole numbers": lambda x, y, i, p, w: w * tf.cast(tf.reduce_mean(i * 10), tf.float32),
    "hardest part": lambda x, y, i, p, w: (
        tf.reduce_mean(tf.math.top_k(x[:, 0], tf.cast(tf.reduce_max(x) * 5, tf.int32)).values) * w
    ),
    "complex": lambda x, y, i, p, w: (
        tf.abs(tf.reduce_sum(tf.cast(x, tf.complex64), 0) + (1 + 0j)) * w
        + tf.abs(tf.reduce_mean(tf.signal.fft(tf.cast(x, tf.complex64))))
    ),
    "complex weights": lambda x, y, i, p, w: tf.math.real(tf.reduce_sum(tf.complex(x, y), 0) * tf.complex(w[0], w[1])),
    "diagonals": lambda x, y, i, p, w: tf.linalg.diag_part(tf.transpose(x) @ y, k=(-1, 1), padding_value=5.0),
    "rows second": lambda x, y, i, p, w: tf.einsum("ij,bi->j", w, x),
    "row of all": lambda x, y, i, p, w: tf.broadcast_to(x[:, 0], [number_of(x), number_of(x)]) * queries(x, y),
    "shape of both": lambda x, y, i, p, w: (
        tf.ones(tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(y))) * tf.broadcast_to(x, [number_of(x), 4])
    ),
    "several rows in one": lambda x, y, i, p, w: tf.reshape(x, [-1, 8]) ** 2 + tf.reshape(y, [number_of(x) // 2, 8]),
    "views beside each other": lambda x, y, i, p, w: (
        tf.reduce_sum(tf.reshape(tf.concat([x, y], 0), [number_of(x), 2, 4]) ** 2, 1) * w[0]
    ),
    "differences of rows": lambda x, y, i, p, w: tf.reduce_mean(tf.abs(x[:, :1] - tf.transpose(x[:, :1])) ** 2, 1),
    "rows that are larger": lambda x, y, i, p, w: tf.cast(x[:, :1] > tf.transpose(y[:, :1]), tf.float32),
    "weights": lambda x, y, i, p, w: tf.nn.tanh(x @ w),
    "weights from the left": lambda x, y, i, p, w: tf.transpose(w @ tf.transpose(x)),
    "covariance": lambda x, y, i, p, w: tf.matmul(x, y, transpose_a=True),
    "einsum": lambda x, y, i, p, w: tf.einsum("bi,ij->bj", x, w) + tf.einsum("bi,bj->ij", x, y)[0],
    "pairs": lambda x, y, i, p, w: tf.einsum("bi,ci->bc", x, y),
    "in three dimensions": lambda x, y, i, p, w: tf.reshape(x, [-1, 2, 2]) @ tf.reshape(y, [-1, 2, 2]) @ w[:2, :2],
    "look-up": lambda x, y, i, p, w: tf.gather(w, i) * x,
    "look-up of rows": lambda x, y, i, p, w: tf.gather(x, (i * 3) % 8) * y,
    "columns": lambda x, y, i, p, w: tf.gather(x, [2, 0], axis=1),
    "one in each row": lambda x, y, i, p, w: tf.gather(x, i, batch_dims=1),
    "transposed": lambda x, y, i, p, w: tf.reduce_sum(tf.transpose(x) * tf.range(8.0), 1),
    "views": lambda x, y, i, p, w: tf.subtract(*tf.split(tf.concat([x, y], 0) ** 2, 2)),
    "stacked views": lambda x, y, i, p, w: tf.reduce_mean(tf.stack([x, y]) ** 2, [0, 2]),
    "compared with repeated thresholds": lambda x, y, i, p, w: tf.reduce_mean(
        tf.tile(tf.reshape(x[:, 0], [1, -1]), [4, 1])
        * tf.cast(tf.tile(w[:, :1], [1, number_of(x)]) < tf.tile(tf.reshape(y[:, 0], [1, -1]), [4, 1]), tf.float32),
        0,
    ),
    "one threshold repeated": lambda x, y, i, p, w: (
        tf.reshape(x[:, 0], [1, -1]) * tf.tile(w[:1, :1], [1, number_of(x)])
    ),
    "broadcast to columns": lambda x, y, i, p, w: (
        tf.reshape(x[:, 0], [1, -1]) * tf.broadcast_to(w[:1, :1], [1, number_of(x)]) + tf.fill([1, number_of(y)], 0.5)
    ),
    "tiled": lambda x, y, i, p, w: tf.reduce_mean(tf.tile(x, [2, 1]) * tf.concat([y, x], 0), 0),
    "beside each other": lambda x, y, i, p, w: tf.concat([x, tf.ones([number_of(x), 1]), y], 1),
    "unstacked": lambda x, y, i, p, w: tf.unstack(x, axis=1)[1] * tf.split(y, 2, 1)[0][:, 0],
    "flattened": lambda x, y, i, p, w: tf.reduce_mean(tf.reshape(x, [-1]) ** 3),
    "folded": lambda x, y, i, p, w: tf.reduce_sum(tf.reshape(x, [-1, 2]) ** 2, 0) / tf.cast(tf.size(x), tf.float32),
    "running along": lambda x, y, i, p, w: tf.cumsum(x, 1) + tf.reverse(y, [1]) + tf.roll(x, 1, 1),
    "running over rows": lambda x, y, i, p, w: tf.cumsum(x, 0) + tf.roll(y, 1, 0),
    "padded": lambda x, y, i, p, w: tf.pad(x, [[0, 0], [1, 1]])[:, 1:-1] + tf.expand_dims(y, 1)[:, 0],
    "chosen": lambda x, y, i, p, w: tf.where(y > 0.5, x, 0.0),
    "masked": lambda x, y, i, p, w: tf.reduce_mean(tf.boolean_mask(x, y[:, 0] > 0.4)),
    "sorted": lambda x, y, i, p, w: tf.sort(x, 1) * tf.math.top_k(y, 4).values,
    "hardest": lambda x, y, i, p, w: tf.reduce_mean(tf.math.top_k(tf.reduce_mean(x, 1), 3).values),
    "best": lambda x, y, i, p, w: tf.one_hot(tf.argmax(x, 1), 4) * y + tf.cast(tf.argmin(x, 1), tf.float32)[:, None],
    "of classes": lambda x, y, i, p, w: tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(i, 4), x @ w),
    "normalised": lambda x, y, i, p, w: tf.math.l2_normalize(x, 1) - tf.math.l2_normalize(y, 0),
    "scaled by the mean": lambda x, y, i, p, w: (x - tf.reduce_mean(x, 0)) / tf.math.reduce_std(y, 0),
    "convolved": lambda x, y, i, p, w: tf.reduce_mean(tf.nn.conv2d(p, kernel, 1, "SAME"), [1, 2, 3]) * w[0, 0],
    "pooled": lambda x, y, i, p, w: tf.nn.max_pool2d(p, 2, 2, "SAME") + tf.nn.avg_pool2d(p, 2, 2, "SAME"),
    "convolved back": lambda x, y, i, p, w: tf.nn.conv2d_transpose(p, kernel, tf.shape(p), 1, "SAME"),
    "resized": lambda x, y, i, p, w: tf.image.resize(p, [2, 2]),
    "in segments": lambda x, y, i, p, w: tf.math.unsorted_segment_sum(x, i, 4) ** 2,
    "means of segments": lambda x, y, i, p, w: tf.math.unsorted_segment_mean(x, i, 4),
    "different": lambda x, y, i, p, w: tf.gather(w, tf.unique(i)[0]),
    "branch": lambda x, y, i, p, w: tf.cond(tf.reduce_mean(x) > 0, lambda: tf.reduce_mean(x**2), lambda: 0.0),
    "loop": lambda x, y, i, p, w: tf.while_loop(lambda n, _: n < 3, lambda n, v: (n + 1, v * 0.5 + y), [0, x])[1],
    "stopped": lambda x, y, i, p, w: x * tf.stop_gradient(tf.reduce_mean(y)),
    "norm of a gradient": lambda x, y, i, p, w: penalty(x, w),
}


def penalty(x, w):
    with tf.GradientTape() as tape:
        tape.watch(x)
        score = tf.reduce_mean(tf.nn.tanh(x @ w) ** 2)
    return tf.reduce_mean((tf.norm(tape.gradient(score, x), axis=1) - 1.0) ** 2)


def elementwise():
    """An expression of each operation of the table that takes tensors alone."""
    found = {}
    for name in sorted(rules.ELEMENTWISE - {"SelectV2", "ClipByValue", "AddN", "Cast", "CheckNumerics", "Conj", "Mod"}):
        raw = getattr(tf.raw_ops, name, None)
        names = [] if raw is None else [each for each in raw.__signature__.parameters if each in OPERANDS]
        for kind in (tf.float32, tf.int32, tf.bool, tf.complex64):
            try:
                raw(**dict.fromkeys(names, tf.ones([2, 4], kind)))
            except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, TypeError, ValueError):
                continue
            found[f"raw {name}"] = of_raw(raw, names, kind)
            break
    return found


OPERANDS = set("x y z a b t m q dy input gradients features outputs tensor value".split())  # noqa: SIM905


def of_raw(raw, names, kind):
    def compute(x, y, i, p, w):
        both = [
            each > 0.5 if kind == tf.bool else tf.cast(each * (1 if kind.is_floating else 9), kind)
            for each in (x, y, x)
        ]
        return raw(**dict(zip(names, both, strict=False)))

    return compute


def on(replicas, expressions):
    """A function of the replicas' shares: by name, the value of each expression and its gradients by the rows of `x`
    and by weights."""
    strategy = TWO if replicas > 1 else tf.distribute.get_strategy()

    def replica(*args):
        *data, counts = args
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        low, high = counts[number], counts[number + 1]
        mine = [each[low : tf.maximum(high, low + 1)] for each in data]
        weights = tf.identity(tf.constant(square))
        with tracker.tracing(Shard(replicas, high - low, tf.constant(8), True), mine) as found:
            return {
                name: differentiated(found, name, function, mine, weights) for name, function in expressions.items()
            }

    signature = [tf.TensorSpec([None, *each.shape[1:]], each.dtype) for each in (x, y, ids, image)]

    @tf.function(autograph=False, input_signature=[*signature, tf.TensorSpec([3], tf.int32)])
    def step(*args):
        return strategy.run(replica, args=args)

    def values(shares):
        got = step(x, y, ids, image, tf.constant(shares))
        return {name: [np.asarray(strategy.experimental_local_results(v)[-1]) for v in got[name]] for name in got}

    return values


def differentiated(found, name, function, mine, weights):
    with tf.GradientTape() as tape:
        tape.watch([mine[0], weights])
        value = function(*mine, weights)
        if value.dtype.is_floating:
            last = value.shape[-1] if value.shape.rank else 1
            target = tf.reduce_sum(value * (tf.range(1.0, 1.0 + last) if last and value.shape.rank else 1.0))
    results = [value]
    if value.dtype.is_floating and not name.startswith("raw"):
        gradients = tape.gradient(target, [mine[0], weights])
        results += [tf.zeros([]) if each is None else tf.convert_to_tensor(each) for each in gradients]
    return [each if found is None else found.same(each) for each in results]


def difference(a, b):
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}"
    a, b = np.asarray(a, np.complex128), np.asarray(b, np.complex128)
    differs = np.abs(a - b) / (1.0 + np.abs(a))
    return float(np.max(np.where(np.isnan(a) & np.isnan(b), 0.0, differs), initial=0.0))


ALL = E | elementwise()
wanted = {name: function for name, function in ALL.items() if len(sys.argv) == 1 or name in sys.argv[1:]}
one, of_two = on(1, wanted)([0, 8, 8]), on(2, wanted)
found = {}
for shares in ([0, 3, 8], [0, 0, 8]):
    two = of_two(shares)
    for name, values in one.items():
        found[f"{name}, {shares[1]} and {8 - shares[1]}"] = [
            difference(*pair) for pair in zip(values, two[name], strict=True)
        ]
print("found", json.dumps(found))
