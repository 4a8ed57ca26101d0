"""Trains small models one after the other, by `dt.fit` or (--reference) by Keras's own `Model.fit` on one device.

Writes what each ended with, history and weights, to --out. Both must be equal: test_one_device.py compares them.
"""

import argparse
import importlib
import pickle
from pathlib import Path

import h5py
import numpy as np
import tensorflow as tf

import dtjob_trainer as dt

parser = argparse.ArgumentParser()
parser.add_argument("--reference", action="store_true")
parser.add_argument("--out", required=True)
parser.add_argument("--package", choices=["keras", "tf_keras"], default="keras")
parser.add_argument("--cases", help="names, with commas between them; all where it is left out")
parser.add_argument("--examples", type=int, default=61)
options = parser.parse_args()
keras, LEGACY = importlib.import_module(options.package), options.package == "tf_keras"
N, BATCH, VALID = options.examples, 20, 33
"""With 61, the last batch holds one, so that all replicas but one get none; no batch is cut evenly by three."""
layers, losses, metrics, optimizers = keras.layers, keras.losses, keras.metrics, keras.optimizers
random = np.random.default_rng(7)
x = random.normal(size=(N, 5)).astype("float32")
y = (x @ random.normal(size=(5, 1)) + 0.1 * random.normal(size=(N, 1))).astype("float32")
classes = random.integers(0, 3, N)
SOME_CLASSES = {0: 0.2, 2: 3.0} | ({1: 1.0} if LEGACY else {})  # tf_keras wants all classes named
weights = random.uniform(0.1, 3.0, N).astype("float32")
xv, yv, wv = x[:VALID] + 0.1, y[:VALID], weights[:VALID][::-1].copy()
sequences = random.normal(size=(N, 6, 3)).astype("float32")
for row, length in enumerate(random.integers(0, 7, N)):
    sequences[row, length:] = 0.0  # masked; some rows whole
CLIPPED, EVERY = {"global_clipnorm": 0.1}, {"gradient_accumulation_steps": 2}
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def train(model, *data, epochs=3, batch_size=BATCH, **arguments):
    if data and isinstance(data[0], tf.data.Dataset):
        batch_size = None
    if options.reference:
        kwargs = {"shuffle": False, "verbose": 0}
        history = model.fit(*data, epochs=epochs, batch_size=batch_size, **kwargs, **arguments)
    else:
        history = dt.fit(model, *data, epochs=epochs, batch_size=batch_size, shuffle=False, **arguments)
    logs = {key: [np.asarray(value).tolist() for value in values] for key, values in history.history.items()}
    return {"history": logs, "weights": model.get_weights()}


def compiled(model, optimizer, loss, **arguments):
    model.compile(optimizer, loss, jit_compile=False, **arguments)
    return model


def dense(*extra, units=1, activation=None, **arguments):
    hidden = layers.Dense(4, "tanh", kernel_regularizer="l2")
    return keras.Sequential([keras.Input((5,)), hidden, *extra, layers.Dense(units, activation, **arguments)])


def adam(**arguments):
    return optimizers.Adam(0.01, **arguments)


def batched(*parts, batch=BATCH):
    return tf.data.Dataset.from_tensor_slices(parts).batch(batch)


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


@case
def clipping():
    found = {}
    for name, limit in (("clipnorm", 0.05), ("global_clipnorm", 0.05), ("clipvalue", 0.01)):
        model = compiled(dense(), optimizers.SGD(0.1, momentum=0.9, **{name: limit}), "mse")
        found[name] = train(model, x, y, epochs=2)
    return found


@case
def accumulation():
    schedule = optimizers.schedules.ExponentialDecay(0.05, 5, 0.8)
    every = {} if LEGACY else {"gradient_accumulation_steps": 3}  # which tf_keras lacks
    optimizer = optimizers.AdamW(schedule, **every, global_clipnorm=0.3, weight_decay=0.01)
    return train(compiled(dense(), optimizer, "mse"), x, y, sample_weight=weights)


@case
def accumulation_of_sparse_gradients():
    words = random_words()
    model = keras.Sequential([keras.Input((4,)), layers.Embedding(11, 3), layers.Flatten(), layers.Dense(1)])
    every = {} if LEGACY else {"gradient_accumulation_steps": 2}
    compiled(model, optimizers.SGD(0.1, **every, clipnorm=0.5), "mse")
    first = train(model, words, y)
    model = keras.Sequential([keras.Input((4,)), layers.Embedding(11, 3), layers.Flatten(), layers.Dense(1)])
    return {"accumulated": first, "at once": train(compiled(model, adam(), "mse"), words, y)}


@case
def moving_averages():
    found = {}
    for every in (None, 4):  # None: the averages become the weights at the end of the run
        optimizer = optimizers.SGD(0.1, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=every)
        found[every] = train(compiled(dense(), optimizer, "mse"), x, y, validation_data=(xv, yv))
    return found


def random_words():
    return np.random.default_rng(3).integers(0, 11, (N, 4))


@case
def loss_scale():
    """Float32, so that it can be compared; one example makes the gradients of its replica alone overflow."""
    huge = x.copy()
    huge[25] = 1e18
    found = {}
    for every in (None,) if LEGACY else (None, 2):
        home, settings = (keras.mixed_precision, {}) if LEGACY else (optimizers, {"gradient_accumulation_steps": every})
        inner = optimizers.SGD(0.01, global_clipnorm=1.0, **settings)
        optimizer = home.LossScaleOptimizer(inner, initial_scale=2.0**12, dynamic_growth_steps=2)
        plain = keras.Sequential([keras.Input((5,)), layers.Dense(1)])
        model = compiled(plain, optimizer, "mse", **({} if LEGACY else {"auto_scale_loss": False}))
        found[every] = train(model, huge, y, epochs=4)["weights"]
        found[f"optimizer {every}"] = [v.numpy() for v in optimizer.variables]
    return found


@case
def several_optimizers_in_one():
    """Keras 3's alone; Adam would hide a gradient that is too large."""
    found = {}
    for name, limits in (("plain", {}), ("clipped", {"clipnorm": 0.05}), ("accumulated", {**CLIPPED, **EVERY})):
        inner = {"second/.*": optimizers.SGD(0.1, momentum=0.5, **limits)}
        optimizer = optimizers.MultiOptimizer(optimizers.OptimizerMap(optimizers.SGD(0.05, **limits), inner))
        stack = [keras.Input((5,)), layers.Dense(4, "tanh"), layers.Dense(1, name="second")]
        found[name] = train(compiled(keras.Sequential(stack), optimizer, "mse"), x, y)
        found[f"{name} slots"] = [v.numpy() for v in optimizer.variables]
    return found


@case
def several_steps_in_one_call():
    model = compiled(dense(), adam(), "mse", metrics=["mae"], steps_per_execution=3)
    seen = []
    calls = keras.callbacks.LambdaCallback(
        on_train_batch_begin=lambda batch, logs: seen.append(("begin", batch)),
        on_train_batch_end=lambda batch, logs: seen.append(("end", batch, logs["loss"], logs["mae"])),
    )
    found = train(model, batched(x, y, batch=8), callbacks=[calls], validation_data=(xv, yv))
    found["seen"] = [event for event in seen if event[0] == "begin" or event[1] < 7]
    rows = tf.data.Dataset.from_tensor_slices((sequences, y, np.arange(N) % 7 % 6 + 1))
    dataset = rows.map(lambda row, target, length: (row[:length], target)).padded_batch(4, ([None, 3], [1]))
    recurrent = keras.Sequential([keras.Input((None, 3)), layers.GRU(4), layers.Dense(1)])
    model = compiled(recurrent, optimizers.SGD(0.1), "mse", steps_per_execution=3)
    return found | {"padded": train(model, dataset, epochs=2, validation_data=dataset)}


@case
def epochs_of_a_number_of_steps():
    dataset, endless = batched(x, y), batched(x, y).repeat()
    parts = batched(xv, yv, batch=7)
    unknown = parts.filter(lambda *_: True)
    beyond = 2 if LEGACY else 9  # after a first validation that ran out of data, tf_keras validates no more
    found = {}
    for name, data, steps, held_out, validation_steps in (
        ("arrays", (x, y), 2, (xv, yv), beyond),
        ("endless", (endless,), 5, parts, 2),
        ("dataset", (dataset,), 2, parts, 9),
        ("of unknown length", (endless,), 5, unknown, beyond),
        ("function", (x, y), 2, (xv, yv) if options.reference else validation_function, 1),
        ("function to its end", (x, y), 2, (xv, yv) if options.reference else validation_function, beyond),
    ):
        if LEGACY and name == "dataset":  # where tf_keras stops at the data's end
            continue
        model = compiled(dense(), "sgd", "mse")
        found[name] = train(
            model, *data, steps_per_epoch=steps, epochs=4, validation_data=held_out, validation_steps=validation_steps
        )
    return found


def validation_function(context):
    rows = context.shuffled(VALID)
    return tf.data.Dataset.from_tensor_slices((xv[rows], yv[rows]))


class Recorder(keras.callbacks.Callback):
    """Notes every call that it gets, with its number and logs."""

    def __init__(self):
        super().__init__()
        self.calls = []


def recording(hook):
    def note(self, *arguments, logs=None):
        given = [part for part in (*arguments, logs) if part is not None]
        self.calls.append([hook, *(sorted(part.items()) if isinstance(part, dict) else part for part in given)])

    return note


for hook in ("epoch", "train", "test", "train_batch", "test_batch"):
    for end in ("begin", "end"):
        setattr(Recorder, f"on_{hook}_{end}", recording(f"{hook}_{end}"))


def written(folder):
    """What callbacks wrote: the names of files, the numbers in them."""
    found = {"files": sorted(path.name for path in folder.glob("*.*"))}
    rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()]
    found["csv"] = [rows[0], *([float(number) for number in row] for row in rows[1:])]
    with h5py.File(folder / "best.weights.h5") as file:
        arrays = []
        file.visititems(lambda name, item: arrays.append(np.array(item)) if isinstance(item, h5py.Dataset) else None)
    found["best"] = arrays
    scalars = []
    for path in sorted(folder.glob("board/*/events*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.tag.startswith(("epoch_", "batch_")):
                    scalars.append([path.parent.name, value.tag, event.step, float(tf.make_ndarray(value.tensor))])
    found["scalars"] = sorted(scalars)
    return found


@case
def callbacks():
    folder = Path(options.out).parent / "written"
    recorder = Recorder()
    every = [
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.9 if epoch < 3 else 0.2),
        keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=0.5),
        keras.callbacks.EarlyStopping("val_loss", patience=2, min_delta=0.1, restore_best_weights=True),
        keras.callbacks.ModelCheckpoint(str(folder / "model-{epoch}.keras")),
        keras.callbacks.ModelCheckpoint(
            str(folder / "best.weights.h5"), "loss", save_best_only=True, save_weights_only=True, save_freq=3
        ),
        keras.callbacks.CSVLogger(str(folder / "log.csv")),
        keras.callbacks.TensorBoard(str(folder / "board"), histogram_freq=1, update_freq="batch"),
        keras.callbacks.TerminateOnNaN(),
        recorder,
    ]
    if dt.is_chief():
        folder.mkdir()
    model = compiled(dense(), optimizers.SGD(0.01), "mse", metrics=["mae"])
    found = train(model, x, y, epochs=9, callbacks=every, validation_data=(xv, yv))
    return found | {"calls": recorder.calls} | (written(folder) if dt.is_chief() else {})


@case
def stop_within_an_epoch():
    broken = x.copy()
    broken[30] = np.nan
    recorder = Recorder()
    model = compiled(dense(), "sgd", "mse")
    found = train(model, broken, y, epochs=5, callbacks=[keras.callbacks.TerminateOnNaN(), recorder])
    return found | {"calls": recorder.calls}


def set_policy(name):
    (keras.mixed_precision.set_global_policy if LEGACY else keras.config.set_dtype_policy)(name)


@case
def mixed_precision():
    """Eight bits of mantissa: equal to a few parts in a hundred only."""
    found = {}
    for policy in ("mixed_bfloat16", "mixed_float16"):
        set_policy(policy)
        try:
            optimizer = optimizers.SGD(0.05)
            if policy == "mixed_float16":  # at the default scale it would depend on the cut which steps overflow
                home = keras.mixed_precision if LEGACY else optimizers
                optimizer = home.LossScaleOptimizer(optimizer, initial_scale=64.0)
            model = compiled(dense(dtype="float32"), optimizer, "mse", metrics=["mae"])
            found[policy] = train(model, x, y, epochs=4, validation_data=(xv, yv))["history"]
        finally:
            set_policy("float32")
    return found


results = {}
for name, function in CASES.items():
    if options.cases is None or name in options.cases.split(","):
        keras.utils.set_random_seed(3)
        results[name] = function()
if dt.is_chief():
    Path(options.out).write_bytes(pickle.dumps(results))
