# SPDX-License-Identifier: Apache-2.0
"""States that replicas do not add up: metrics that keep the largest or the last, layers that count their calls."""

import tensorflow as tf
from one_device_setup import (
    LEGACY,
    VALID,
    case,
    classes,
    compiled,
    dense,
    keras,
    layers,
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


class Kept(keras.metrics.Metric):
    """What `keep` makes of what there was and of a batch's absolute errors."""

    def __init__(self, keep, name):
        super().__init__(name=name)
        self.kept, self.keep = self.add_weight(name="kept", shape=(), initializer="zeros"), keep

    def update_state(self, y_true, y_pred, sample_weight=None):
        errors = tf.abs(tf.cast(y_true, y_pred.dtype) - y_pred)
        self.kept.assign(self.keep(tf.convert_to_tensor(self.kept), errors))

    def result(self):
        return tf.convert_to_tensor(self.kept) + 0.0


KEPT = {
    "largest": lambda kept, errors: tf.maximum(kept, tf.reduce_max(errors)),
    "least": lambda kept, errors: tf.minimum(kept, tf.reduce_min(-errors)),
    "last": lambda kept, errors: errors[-1, 0],
    "moving": lambda kept, errors: 0.9 * kept + 0.1 * tf.reduce_mean(errors),
    "steps": lambda kept, errors: kept + 1.0,
    "means": lambda kept, errors: kept + tf.reduce_mean(errors),
    "sums": lambda kept, errors: kept + tf.reduce_sum(errors),
    "ranks": lambda kept, errors: kept + tf.reduce_sum(tf.cast(errors < tf.reduce_mean(errors), tf.float32)),
}


def share_of_largest(y_true, y_pred):
    """A function that gives one number."""
    return tf.reduce_max(tf.abs(y_true - y_pred)) / (1.0 + tf.reduce_mean(tf.abs(y_true)))


def every_metric():
    return [*(Kept(keep, name) for name, keep in KEPT.items()), share_of_largest]


@case
def metrics_that_keep():
    # the last of these steps in one call has a batch of another size
    together = {} if LEGACY else {"steps_per_execution": 4}
    model = compiled(dense(), "sgd", "mse", metrics=every_metric(), **together)
    return train(model, x, y, validation_data=(xv, yv))


class OwnKept(keras.Sequential):
    def train_step(self, data):
        inputs, targets = data
        with tf.GradientTape() as tape:
            y_pred = self(inputs, training=True)
            loss = tf.reduce_mean((y_pred - targets) ** 2)
        found = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, found), found, strict=True))
        for metric in self.own:
            metric.update_state(targets, y_pred)
        self.top.update_state(tf.reduce_mean(targets), tf.reduce_mean(y_pred))
        return {metric.name: metric.result() for metric in [*self.own, self.top]}


@case
def metrics_of_a_step_that_keep():
    model = OwnKept([keras.Input((5,)), layers.Dense(1)])
    model.own = [Kept(keep, name) for name, keep in KEPT.items()]
    model.top = Kept(lambda kept, error: tf.maximum(kept, error), "top")
    compiled(model, "sgd", None)
    return train(model, x, y)


LEFT_OUT = {"Metric", "MeanMetricWrapper", "Mean", "Sum", "MeanTensor", "SumOverBatchSizeMetric", "MeanRelativeError"}
OF_KINDS = {"SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy"}
OF_IDS = {"IoU", "MeanIoU"}
OF_ROWS = ("CategoricalAccuracy", "CategoricalCrossentropy", "TopKCategoricalAccuracy", "OneHotIoU", "OneHotMeanIoU")
ARGUMENTS = {
    "MeanIoU": {"num_classes": 2},
    "IoU": {"num_classes": 2, "target_class_ids": [1]},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0, 2]},
    "OneHotMeanIoU": {"num_classes": 3},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
    "TopKCategoricalAccuracy": {"k": 2},
    "SparseTopKCategoricalAccuracy": {"k": 2},
    "F1Score": {"average": "macro"},
}


def of_package():
    """Every class of `keras.metrics`, by name."""
    found = {name: getattr(metrics, name) for name in dir(metrics) if name[0].isupper() and name not in LEFT_OUT}
    return {name: kind for name, kind in found.items() if isinstance(kind, type) and issubclass(kind, metrics.Metric)}


def metrics_for(names):
    return [of_package()[name](**ARGUMENTS.get(name, {})) for name in names]


@case
def every_metric_of_keras():
    found, rest = {}, set(of_package())
    rows, labels = keras.utils.to_categorical(classes, 3), (y > 0).astype("float32")
    three = [name for name in OF_ROWS if name in rest]
    sparse, ids = sorted(OF_KINDS & rest), sorted(OF_IDS & rest)
    one = sorted(rest - {*three, *sparse, *ids})
    for names, targets, units, activation in (
        (one, labels, 1, "sigmoid"),
        (three, rows, 3, "softmax"),
        (sparse, classes, 3, "softmax"),
        (ids, labels, 1, "hard_sigmoid"),
    ):
        model = dense(units=units, activation=activation)
        parts = {"metrics": metrics_for(names), "weighted_metrics": metrics_for(names)}
        compiled(model, optimizers.SGD(0.5), "mse", **parts)
        if names is sparse:
            compiled(model, optimizers.SGD(0.5), "sparse_categorical_crossentropy", **parts)
        held_out = (xv, targets[:VALID])
        history = train(model, x, targets, sample_weight=weights, validation_data=held_out, epochs=2)
        found["-".join(names)] = history["history"]
    return found


class Counts(layers.Layer):
    """Counts its calls in variables that replicas change alike, and rows in some that they add up; acts on both."""

    def build(self, shape):
        def make(name, kind, dtype="float32"):
            aggregation = tf.VariableAggregation[kind.upper()] if LEGACY else kind
            arguments = {"initializer": "zeros", "trainable": False, "shape": (), "dtype": dtype}
            return self.add_weight(name=name, aggregation=aggregation, **arguments)

        self.calls = [make(f"calls_{kind}", kind) for kind in ("none", "mean", "only_first_replica")]
        self.numbers = [make(f"numbers_{kind}", kind, "int32") for kind in ("none", "only_first_replica")]
        self.rows = [make("rows", "sum"), make("whole_rows", "sum", "int32")]

    def call(self, inputs, training=False):
        for calls in self.calls:
            calls.assign_add(1.0)
        for numbers in self.numbers:
            numbers.assign(numbers + 1)
        for rows in self.rows:
            rows.assign_add(tf.cast(tf.shape(inputs)[0], rows.dtype))
        warm = tf.add_n([tf.convert_to_tensor(calls) for calls in self.calls])
        return inputs * tf.minimum(1.0, warm / 30.0 + tf.convert_to_tensor(self.rows[0]) / 1000.0)


class Peak(layers.Layer):
    """Keeps the largest that it has seen in a metric."""

    def __init__(self):
        super().__init__()
        self.peak = Kept(KEPT["largest"], "peak")

    def call(self, inputs):
        self.peak.update_state(0.0, inputs)
        return inputs


@case
def layers_that_count():
    model = compiled(dense(Counts(), Peak()), "sgd", "mse")
    return train(model, x, y, validation_data=(xv, yv))


@case
def layers_that_normalise():
    """Of batches of which each replica has rows, of tf_keras equally many."""
    found, part = {}, (x[:60], y[:60])
    kinds = {"synchronized": layers.BatchNormalization(synchronized=True)}
    if not LEGACY:  # whose own does not go with Sequential
        kinds["spectral"] = layers.SpectralNormalization(layers.Dense(4))
    for name, layer in kinds.items():
        keras.utils.set_random_seed(3)
        found[name] = train(
            compiled(dense(layer), "sgd", "mse"), *part, batch_size=12 if LEGACY else 20, validation_data=(xv, yv)
        )
    return found


@case
def stateful():
    """Recurrent layers that go on where the batch before has ended."""
    rows, targets = sequences[:60], y[:60]
    stack = [keras.Input(batch_shape=(20, 6, 3)), layers.LSTM(4, stateful=True), layers.Dense(1)]
    return train(compiled(keras.Sequential(stack), "adam", "mse"), rows, targets)
