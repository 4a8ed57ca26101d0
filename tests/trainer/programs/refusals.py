# SPDX-License-Identifier: Apache-2.0
"""Calls `fit` with what cannot be right, by hand, and checks what it answers."""

import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import sources_by_hand
import tensorflow as tf
import tf_keras
from refusing import refused

import dtjob_trainer as dt
from dtjob_trainer.callbacks import keeping
from dtjob_trainer.checkpoint import packing
from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.contract.task import Task
from dtjob_trainer.errors import StateError
from dtjob_trainer.models import optimizers
from dtjob_trainer.models.kept_variables import State
from dtjob_trainer.models.values import Held
from dtjob_trainer.strategies.collective import Group
from dtjob_trainer.strategies.create import StrategyError, configure_devices, create

reloaded = keras.models.load_model(sys.argv[1])
assert reloaded.predict(np.zeros((1, 8, 8, 1), np.float32), verbose=0).shape == (1, 10)


def task(strategy: str, **options: Any) -> Task:
    return Task("j", "default", "u", "chief", 0, strategy=strategy, strategy_options=options)


refused(["crossDeviceOps", "NCCL"], lambda: create(task("Mirrored", crossDeviceOps="NCCL")))
refused(["communication", "NCCL"], lambda: create(task("MultiWorkerMirrored", communication="NCCL")))
assert issubclass(StrategyError, ValueError)

x, y = np.zeros((10, 3), np.float32), np.zeros(10, np.int64)


def model(**compile_options: Any) -> Any:
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    if compile_options:
        made.compile(loss="mse", **compile_options)
    return made


def fit(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: dt.fit(*args, **options)


refused(["compile"], fit(model(), x, y))
refused(["Keras 3"], fit(object(), x, y))
older = tf_keras.Sequential([tf_keras.Input((3,)), tf_keras.layers.Dense(2)])
refused(["not compiled"], fit(older, x, y))
older.compile("sgd", "mse")
refused(["tf_keras.callbacks"], fit(older, x, y, callbacks=[keras.callbacks.TerminateOnNaN()]))
older.compile("sgd", tf_keras.losses.MeanSquaredError("none"))
refused(["reduction none", "sum_over_batch_size"], fit(older, x, np.zeros((10, 2), np.float32)))
tf_keras.backend.set_floatx("float64")
refused(["set_floatx('float64')"], fit(older, x, y))
tf_keras.backend.set_floatx("float32")
each = model()
each.compile("sgd", keras.losses.MeanSquaredError(reduction=None))
refused(["reduction None", "sum_over_batch_size"], fit(each, x, y))
good = model(optimizer="sgd")
refused(["epochs=3.0", "whole number", "int(3.0)"], fit(good, x, y, epochs=3.0))
refused(["steps_per_epoch=-1", "at least 1"], fit(good, x, y, steps_per_epoch=-1))
refused(["initial_epoch=-1", "negative"], fit(good, x, y, initial_epoch=-1))
refused(["validation_freq=0", "at least 1"], fit(good, x, y, validation_freq=0))
refused(["validation_freq='2'", "[1, 5, 10]"], fit(good, x, y, validation_freq="2"))
refused(["workers", "Keras 3", "PyDataset itself"], fit(good, x, y, workers=2))
refused(["validation_split=1.5", "0.2"], fit(good, x, y, validation_split=1.5))
refused(["validation_split=0.99", "none to train"], fit(good, x, y, validation_split=0.99))
refused(["x", "lengths"], fit(good, x, y[:5]))
refused(["x", "empty"], fit(good, x[:0], y[:0]))


class OwnStep(keras.Sequential):
    def train_step(self, data: Any) -> dict[str, Any]:
        images, targets = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=targets, y_pred=self(images, training=True))
        self.optimizer.apply_gradients(zip(tape.gradient(loss, self.weights), self.weights, strict=True))
        return {"loss": loss}


own = OwnStep([keras.Input((3,)), keras.layers.Dense(2)])
own.compile("sgd", "mse")
for size, batches in ((32, 1), (4, 3)):  # on one replica, batches that are not full are trained on, as by Keras
    before = int(own.optimizer.iterations.numpy())
    fit(own, x, np.zeros((10, 2), np.float32), batch_size=size)()
    assert int(own.optimizer.iterations.numpy()) - before == batches
refused(["validation_data", "4"], fit(good, x, y, validation_data=(x, y, y, y)))
refused(["class_weight", "sample weights"], fit(good, x, y, sample_weight=y, class_weight={0: 2.0}))
refused(["class_weight", "one array"], fit(good, x, [y, y], class_weight={0: 2.0}))


class Batches(keras.utils.PyDataset):
    def __getitem__(self, index: int) -> Any:
        raise AssertionError("read before it is refused")

    def __len__(self) -> int:
        return 2


class DataLoader:
    """Named, as Keras knows it by, like PyTorch's."""


instead = ["arrays", "tf.data.Dataset", "data function"]
refused(["x", "generator has no batches"], fit(good, (each for each in ())))
refused(["x", "a batch must be", "set"], fit(good, ({x.shape} for _ in range(2))))
refused(["x", "brings its own targets"], fit(good, Batches(), y))
refused(["x", "DataLoader", "PyDataset", "loader.dataset", "from_generator"], fit(good, DataLoader()))
refused(["validation_data", "object", *instead], fit(good, x, y, validation_data=object()))
for data in (Batches(), tf.data.Dataset.from_tensor_slices((x, y)).batch(5), (each for each in ()), lambda: None):
    refused(["validation_split", "last rows of arrays", "validation_data"], fit(good, data, validation_split=0.5))
refused(["x", "np.array"], fit(good, x, [0, x]))
refused(["x", "unequal lengths"], fit(good, [[1.0], [1.0, 2.0]], y[:2]))
refused(["x", "not all numbers"], fit(good, x, np.array([0, None] * 5)))
refused(["x", "missing", *instead], fit(good))
refused(["x", "shape ()", *instead], fit(good, np.float32(1.0), y))
dataset = tf.data.Dataset.from_tensor_slices((x, y))
refused(["y"], fit(good, dataset.batch(5), y))
refused(["x", "no end", "steps_per_epoch"], fit(good, dataset.batch(5).repeat()))
for endless in (lambda context: dataset.repeat()), (lambda: dataset.repeat()):
    refused(["x", "no end", "steps_per_epoch"], fit(good, endless))
refused(["tf.data.Dataset"], fit(good, lambda context: x))
refused(["tf.data.Dataset"], fit(good, lambda: x))
refused(["x", "one argument", "or none", "(context, more)"], fit(good, lambda context, more: dataset))
shard = lambda context: tf.data.Dataset.from_tensor_slices(context.shuffled(10))  # noqa: E731
refused(["steps_per_epoch=9"], fit(good, shard, batch_size=5, steps_per_epoch=9))
empty = dataset.filter(lambda a, b: False)
refused(["x", "no batches"], fit(good, dataset.batch(32, drop_remainder=True)))
refused(["validation_data", "no batches"], fit(good, x, y, validation_data=dataset.take(0).batch(2)))
for none in (dataset.batch(32, drop_remainder=True), shard, (x, y)):
    size = None if isinstance(none, tf.data.Dataset) else 32
    words = ["data", "no batches" if size is None else "10 examples are less than one batch of 32"]
    refused(words, lambda d=none, b=size: dt.train(lambda _: None, d, variables=[], total_steps=1, batch_size=b))


def packed_and_unpacked(state: Any) -> Any:
    text, large = packing.pack(state)
    assert not large
    return packing.unpack(text, None)  # type: ignore[arg-type]


def fewer(context: dt.DataContext) -> Any:
    context.shuffled(10)
    return tf.data.Dataset.from_tensor_slices((x[:7], np.zeros((7, 2), np.float32)))


refused(["x", "gave 2 examples for step 1", "share of the batch are 5"], fit(good, fewer, batch_size=5))


class Noting(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        logs.update(note="fair", counts=np.arange(2), other=self.params)

    def on_train_end(self, logs=None):
        assert self.model.history.history["note"] == ["fair"]


added = dt.fit(model(optimizer="sgd"), x, pairs := np.zeros((10, 2), np.float32), callbacks=[Noting()]).history
assert added["note"] == ["fair"], added
assert added["counts"][0].tolist() == [0, 1]
kept = keeping.decode(packed_and_unpacked(keeping.encode_history(added)))
assert kept["note"] == ["fair"], kept
assert kept["counts"][0].tolist() == [0, 1]
assert kept["loss"] == added["loss"]
told = {"best": {3: 0.5, 4: {"x": 1}}, "half": np.arange(3).astype(tf.bfloat16.as_numpy_dtype), "text": np.array(["é"])}
back = keeping.decode(packed_and_unpacked(keeping.encode(told)))
assert back["best"] == told["best"], back
for name in ("half", "text"):
    assert back[name].dtype == told[name].dtype, back[name].dtype
    assert back[name].tolist() == told[name].tolist()
frozen = model(optimizer="sgd")
frozen.trainable = False
frozen.compile("sgd", "mse")
assert len(fit(frozen, x, pairs, epochs=2)().history["loss"]) == 2
held_out = {"batch_size": 5, "validation_data": lambda context: empty}
refused(["validation_data", "no batches"], fit(good, x, pairs, **held_out, validation_steps=2))
refused(["validation_data", "no batches"], fit(good, x, pairs, **held_out))
refused(["validation_data", "no batches"], fit(good, x, pairs, validation_data=empty.batch(5)))
refused(["x", "no batches"], fit(good, empty.batch(5)))
refused(["scale_lr"], fit(model(optimizer=keras.optimizers.SGD(lambda: 0.1)), x, y, scale_lr=True))


class Compiling(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        if epoch == 1:
            self.model.compile("sgd", "mse")


compiles = fit(model(optimizer="sgd"), x, pairs, epochs=2, callbacks=[Compiling()])
refused(["compile() was called while fit runs", "initial_epoch"], compiles)
sources_by_hand.check()
weight, group = keras.Variable(np.ones(2, np.float32), name="weight"), Group(tf.distribute.get_strategy(), None)
half = {"w": np.ones(2, np.float16), "replicas": np.zeros((1, 0), np.uint8)}
refused(
    ["variable w is (2,) float32 here and (2,) float16 there", "choose another directory"],
    lambda: State(group, {"w": weight}, {}, []).restore(Held(half)),
    StateError,
)


class Own(keras.Model):
    """Without `call`, as the GAN of Keras's guide."""

    def __init__(self, *begin: Any):
        super().__init__()
        self.inner = keras.Sequential([*begin, keras.layers.Dense(2)])

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(self.inner(data[0]))
        weights = self.inner.trainable_weights
        hidden.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return {"loss": loss}


def reporting(package: Any) -> Any:
    class Reporting(package.Sequential):
        def compute_metrics(self, x, y, y_pred, sample_weight=None):
            return {**super().compute_metrics(x, y, y_pred, sample_weight), "f1": tf.constant(1.0)}

    made = Reporting([package.Input((3,)), package.layers.Dense(2)])
    made.compile("sgd", "mse")
    return made


for package in (keras, tf_keras):
    refused(["f1", "get_metrics_result()"], fit(reporting(package), x, np.zeros((10, 2), np.float32), batch_size=5))
hidden = keras.optimizers.SGD()
own = Own()
own.compile()
refused(["Own has no call()", "sequential", "keras.Input"], fit(own, x, y, batch_size=5))
own = Own(keras.Input((3,)))
own.compile()
refused(["train_step applies", "attribute of the model"], fit(own, x, y, batch_size=5))


class Shouting(keras.optimizers.SGD):
    def apply(self, grads, trainable_variables=None):
        super().apply(grads, trainable_variables)


def limit(optimizer: Any, strategy: str = "Mirrored") -> str:
    """The first reason why `optimizer` cannot be right under that strategy."""
    return next(optimizers.limits(optimizer, TRAITS[strategy]), "")


every = {"gradient_accumulation_steps": 2}
assert "apply()" in limit(Shouting(**every))
several = keras.optimizers.MultiOptimizer
assert "apply()" in limit(several(keras.optimizers.OptimizerMap(Shouting(**every))))
with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    late = several(lambda variable: Shouting(**every))  # makes them once it is built
    refused(["apply()"], fit(model(optimizer=late), x, y))
assert "larger batch_size" in limit(keras.optimizers.SGD(**every), "ParameterServer")
assert not limit(keras.optimizers.SGD(**every, clipnorm=1.0, use_ema=True))

schedule = keras.optimizers.schedules.CosineDecay(0.1, 10, warmup_target=0.4, warmup_steps=4)
scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(schedule))
optimizers.scale_learning_rate(scaled, 2)
for step in range(15):
    found = scaled.inner_optimizer._learning_rate(step)
    np.testing.assert_allclose(found, 2 * np.asarray(schedule(step)), rtol=1e-6)

configured = False
try:
    configure_devices({"logicalCPUs": 2})
except RuntimeError:
    configured = True  # devices are fixed once TensorFlow has started
assert configured
