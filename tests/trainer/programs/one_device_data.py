# SPDX-License-Identifier: Apache-2.0
"""Every kind of data that Keras takes, as one device has it."""

import tempfile
from pathlib import Path

import keras as keras_3
import numpy as np
import scipy.sparse
import tensorflow as tf
import tf_keras
from one_device_setup import (
    BATCH,
    LEGACY,
    VALID,
    N,
    adam,
    batched,
    case,
    compiled,
    dense,
    keras,
    layers,
    options,
    random,
    sequences,
    train,
    x,
    xv,
    y,
    yv,
)

LENGTHS = np.arange(N) % 7 % 6 + 1
SHAPES = tf.TensorSpec((None, 5)), tf.TensorSpec((None, 1))


def of_unknown_length(dataset):
    return dataset.filter(lambda *_: True)


def batches(passes=1):
    for _ in range(passes):
        for begin in range(0, N, BATCH):
            yield x[begin : begin + BATCH], y[begin : begin + BATCH]


def from_records():
    """The examples from a TFRecord file."""
    path = str(Path(tempfile.mkdtemp()) / "examples")
    with tf.io.TFRecordWriter(path) as file:
        for inputs, target in zip(x, y, strict=True):
            values = {"x": inputs, "y": target}
            features = {k: tf.train.Feature(float_list=tf.train.FloatList(value=v)) for k, v in values.items()}
            file.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    kinds = {"x": tf.io.FixedLenFeature([5], tf.float32), "y": tf.io.FixedLenFeature([1], tf.float32)}
    dataset = tf.data.TFRecordDataset(path).batch(BATCH).map(lambda rows: tf.io.parse_example(rows, kinds))
    return dataset.map(lambda parts: (parts["x"], parts["y"]))


def from_csv():
    """The examples from a CSV file."""
    path = Path(tempfile.mkdtemp()) / "examples.csv"
    rows = [",".join(map(repr, row)) for row in np.concatenate([x, y], 1).tolist()]
    path.write_text("\n".join(["a,b,c,d,e,y", *rows]))
    dataset = tf.data.experimental.make_csv_dataset(str(path), BATCH, label_name="y", num_epochs=1, shuffle=False)
    return dataset.map(lambda parts, target: (tf.stack(list(parts.values()), 1), target[:, None]))


def in_buckets():
    """Sequences in batches of like lengths, the first of which are smaller."""
    dataset = tf.data.Dataset.from_tensor_slices((sequences, y, LENGTHS))
    dataset = dataset.map(lambda rows, target, length: (rows[:length], target))
    return dataset.bucket_by_sequence_length(lambda rows, _: tf.shape(rows)[0], [3, 5], [8, 12, 9])


@case
def arrays():
    """arrays, tensors, dicts and tuples of them"""
    found = {"arrays": train(compiled(dense(), "sgd", "mse"), x, y)}
    tensors = tf.constant(x), tf.constant(y), tf.constant(xv), tf.constant(yv)
    found["tensors"] = train(compiled(dense(), "sgd", "mse"), *tensors[:2], validation_data=tensors[2:])
    left, right = keras.Input((5,), name="left"), keras.Input((5,), name="right")
    joined = layers.Dense(1)(layers.Concatenate()([layers.Dense(3)(left), right]))
    parts = {"left": x, "right": x[:, ::-1].copy()}
    return found | {"parts": train(compiled(keras.Model([left, right], joined), "sgd", "mse"), parts, y)}


@case
def dataset():
    """a batched Dataset of known length"""
    model = compiled(dense(), "sgd", "mse", metrics=["mae"])
    return train(model, batched(x, y), validation_data=batched(xv, yv, batch=7))


@case
def unknown_length():
    """a Dataset of unknown length: filter, from_generator"""
    unknown = of_unknown_length(batched(x, y))
    held_out = of_unknown_length(batched(xv, yv, batch=7))
    model = compiled(dense(), "sgd", "mse", metrics=["mae"])
    found = {"filtered": train(model, unknown, validation_data=held_out, validation_steps=4)}
    model = compiled(dense(), "sgd", "mse", steps_per_execution=1 if LEGACY else 3)
    generated = tf.data.Dataset.from_generator(batches, output_signature=SHAPES)
    return found | {"generated": train(model, generated, validation_data=held_out)}


@case
def files_and_buckets():
    """a Dataset of files (TFRecord, CSV) or of buckets by length"""
    recurrent = keras.Sequential([keras.Input((None, 3)), layers.GRU(4), layers.Dense(1)])
    return {
        "records": train(compiled(dense(), "sgd", "mse"), from_records()),
        "csv": train(compiled(dense(), "sgd", "mse"), from_csv()),
        "buckets": train(compiled(recurrent, "sgd", "mse"), in_buckets()),
    }


@case
def data_that_runs_out():
    """data that ends within an epoch of steps_per_epoch"""  # 3, 1, 3, 1 of the four batches
    found = {}
    kinds = {
        "unknown": of_unknown_length(batched(x, y)),
        "known": batched(x, y),
        "generated": tf.data.Dataset.from_generator(batches, output_signature=SHAPES),
    }
    for name, data in kinds.items():
        found[name] = train(compiled(dense(), "sgd", "mse"), data, epochs=4, steps_per_epoch=3)
    found["all"] = train(compiled(dense(), "sgd", "mse"), kinds["unknown"], epochs=3, steps_per_epoch=9)
    found["arrays"] = train(compiled(dense(), "sgd", "mse"), x, y, epochs=4, steps_per_epoch=3)
    model = compiled(dense(), "sgd", "mse")
    found["size"] = train(
        model, x, y, epochs=4, steps_per_epoch=2, validation_data=(xv, yv), validation_steps=3, batch_size=None
    )
    return found


class Batches(keras_3.utils.PyDataset):
    """Batches in an order that each epoch's end turns, and what was called."""

    def __init__(self, inputs, targets, batch=BATCH, turn=9, **arguments):
        super().__init__(**arguments)
        self.parts, self.batch, self.turn, self.calls = (inputs, targets), batch, turn, []
        self.order = np.arange(len(inputs))

    def __len__(self):
        return -(-len(self.order) // self.batch)

    def __getitem__(self, index):
        self.calls.append(index)
        rows = self.order[index * self.batch : (index + 1) * self.batch]
        return tuple(part[rows] for part in self.parts)

    def on_epoch_begin(self):
        self.calls.append("begin")

    def on_epoch_end(self):
        self.calls.append("end")
        self.order = np.roll(self.order, self.turn)


@case
def py_dataset():
    """keras.utils.PyDataset, alone and with workers"""
    data, held_out = Batches(x, y), Batches(xv, yv, 7)
    found = train(compiled(dense(), adam(), "mse"), data, validation_data=held_out)
    found |= {"calls": data.calls, "held out": held_out.calls}
    for name, arguments in {
        "threads": {"workers": 2, "max_queue_size": 3},
        "processes": {"workers": 2, "use_multiprocessing": True},
    }.items():
        found[name] = train(compiled(dense(), adam(), "mse"), Batches(x, y, **arguments))
    data = Batches(x, y, turn=0)  # a batch may be read before an epoch ends to which it does not belong
    return found | {"steps": train(compiled(dense(), "sgd", "mse"), data, epochs=4, steps_per_epoch=3)}


@case
def generators():
    """Python generator of batches"""
    found = {"endless": train(compiled(dense(), adam(), "mse"), batches(99), epochs=3, steps_per_epoch=5)}
    found["one epoch"] = train(compiled(dense(), adam(), "mse"), batches(), epochs=1, validation_data=(xv, yv))
    # Keras's own second validation on a generator sees its first two batches alone
    for name, held_out, steps in ("held out", batches(), None), ("some held out", batches(99), 3):
        data = of_unknown_length(batched(x, y)).take(steps or N) if options.reference else held_out
        found[name] = train(
            compiled(dense(), "sgd", "mse"), x, y, epochs=3, validation_data=data, validation_steps=steps
        )
    ended = train(compiled(dense(), "sgd", "mse"), batches(), epochs=2, steps_per_epoch=3)
    return found | {"ended": ended}


@case
def lists():
    """lists of numbers"""
    model = compiled(dense(), "sgd", "mse")
    if options.reference:
        return train(model, x, y, validation_data=(xv, yv))
    return train(model, x.tolist(), y[:, 0].tolist(), validation_data=(xv.tolist(), yv.tolist()))


@case
def function_of_no_argument():
    """function of no argument that returns an unbatched Dataset"""
    model = compiled(dense(), "sgd", "mse")
    data = (x, y) if options.reference else (lambda: tf.data.Dataset.from_tensor_slices((x, y)),)
    held_out = (xv, yv)
    if not options.reference:
        held_out = lambda: of_unknown_length(tf.data.Dataset.from_tensor_slices((xv, yv)))  # noqa: E731
    return train(model, *data, validation_data=held_out)


@case
def function_of_context():
    """function of DataContext that returns this shard's unbatched Dataset"""
    model = compiled(dense(), "sgd", "mse")
    if options.reference:
        return train(model, x, y)

    def shard(context):
        rows = tf.data.Dataset.from_tensor_slices(context.shuffled(N))
        return rows.map(lambda row: (tf.gather(x, row), tf.gather(y, row)))

    return train(model, shard)


class SequenceOfTfKeras(tf_keras.utils.Sequence):
    """Batches as those above, of tf_keras, which tells it of less."""

    __len__, __getitem__, on_epoch_end = Batches.__len__, Batches.__getitem__, Batches.on_epoch_end

    def __init__(self, inputs, targets, batch=BATCH):
        self.parts, self.batch, self.turn, self.calls = (inputs, targets), batch, 9, []
        self.order = np.arange(len(inputs))


@case
def sequence():
    """tf_keras.utils.Sequence, alone, with workers and with steps_per_epoch"""
    data, held_out = SequenceOfTfKeras(x, y), SequenceOfTfKeras(xv, yv, 7)
    found = {"alone": train(compiled(dense(), adam(), "mse"), data, validation_data=held_out)}
    ends = [sum(call == "end" for call in each.calls) for each in (data, held_out)]
    for name, arguments in {
        "workers": {"workers": 2, "max_queue_size": 3},
        "steps": {"steps_per_epoch": 3},
        "too many steps": {"steps_per_epoch": 5},
    }.items():
        found[name] = train(compiled(dense(), adam(), "mse"), SequenceOfTfKeras(x, y), **arguments)
    return found | {"ends": ends}


class Means(keras.layers.Layer):
    """The mean of some rows of a table, of each example as many as it has."""

    def build(self, shape):
        self.table = self.add_weight(shape=(20, 3), initializer="ones", name="table")

    def call(self, rows):
        table = tf.convert_to_tensor(self.table)
        return tf.reduce_mean(tf.ragged.map_flat_values(lambda numbers: tf.gather(table, numbers), rows), axis=1)

    def compute_output_shape(self, shape):
        return shape[0], 3


class OfRagged(keras.Model):
    """Uses a method that dense tensors lack."""

    def __init__(self):
        super().__init__()
        self.inner = layers.Dense(1)

    def call(self, rows):
        return self.inner(tf.reduce_sum(rows.to_tensor(), 1, keepdims=True))


@case
def ragged_and_sparse():
    """ragged and sparse tensors, as arrays and in a Dataset"""
    rows = tf.ragged.constant([random.integers(0, 20, length).tolist() for length in LENGTHS], dtype=tf.int64)
    bags = keras.Sequential([keras.Input((None,), dtype="int64", ragged=True), Means(), layers.Dense(1)])
    bags = compiled(bags, "sgd", "mse", metrics=["mae"], steps_per_execution=2)
    found = {"ragged": train(bags, batched(rows, y), validation_data=batched(rows[:VALID], yv, batch=7))}
    few = np.where(random.uniform(size=x.shape) < 0.5, x, 0.0)
    linear = keras.Sequential([keras.Input((5,), sparse=True), layers.Dense(3), layers.Dense(1)])
    sparse = batched(tf.sparse.from_dense(few), y)
    for name, tensor in {"tensor": tf.sparse.from_dense(few), "matrix": scipy.sparse.csr_matrix(few)}.items():
        linear_too = keras.models.clone_model(linear)
        found[name] = train(compiled(linear_too, "sgd", "mse"), tensor, y)
    bags_too = compiled(keras.models.clone_model(bags), "sgd", "mse")
    found["array"] = train(bags_too, rows, y)
    found["methods"] = train(compiled(OfRagged(), adam(), "mse", metrics=["mae"]), batched(tf.cast(rows, "float32"), y))
    return found | {"sparse": train(compiled(linear, "sgd", "mse", metrics=["mae"]), sparse, validation_data=sparse)}


@case
def smallest_batches():
    """batches of fewer examples than replicas"""  # of training and validation; metrics with sums and without
    every = ["mae", keras.metrics.RootMeanSquaredError()]
    model = compiled(dense(), adam(), "mse", metrics=every, weighted_metrics=["mse"])
    found = {"dataset": train(model, batched(x, y), validation_data=batched(xv, yv, batch=8))}
    model = compiled(dense(), adam(), "mse", metrics=["mae"], steps_per_execution=3)
    found["arrays"] = train(model, x, y, validation_data=(xv[:21], yv[:21]))
    few, examples = slice(0, 12), tf.data.Dataset.from_tensor_slices((x[:12], y[:12]))
    for size in (1, 2):
        model = compiled(keras.Sequential([keras.Input((5,)), layers.Dense(3, "relu"), layers.Dense(1)]), adam(), "mse")
        found[str(size)] = train(model, x[few], y[few], batch_size=size, sample_weight=np.arange(12.0) + 1)
    for name, given in {"dataset of one": examples.batch(1), "function": lambda: examples}.items():
        given = examples.batch(1) if options.reference else given
        found[name] = train(compiled(dense(), "sgd", "mse", metrics=["mae"]), given, batch_size=1)
    return found
