# SPDX-License-Identifier: Apache-2.0
"""What dtjob replaces in Keras 3, and Keras's private names."""

import contextlib
import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks.hooks import Hook, during, no_such, original, read

_OPTIMIZER = "keras:Optimizer"
_TRAINS = "train models under the strategy of the job"

FIT = Hook(
    targets=("keras:Model.fit",),
    does="It trains under the strategy of the job, with checkpoints and resume.",
    gone=_TRAINS,
    ends=True,
)
EVALUATE = Hook(
    targets=("keras:Model.evaluate",),
    does="It evaluates under the strategy of the job.",
    gone="evaluate models under the strategy of the job",
    ends=True,
)
PREDICT = Hook(
    targets=("keras:Model.predict",),
    does="In groups, and on several CPUs, it predicts on one device of the task that calls it.",
    gone="predict under the strategy of the job",
)
PREDICT_ON_BATCH = Hook(
    targets=("keras:Model.predict_on_batch",),
    does="It predicts as `predict` does.",
    gone="predict under the strategy of the job",
)
STEPS_BY_HAND = {
    name: Hook(
        targets=(f"keras:Model.{name}",),
        does="Under MultiWorkerMirrored and ParameterServer it raises an error that says what to call.",
        gone="refuse it where it fails",
    )
    for name in ("train_on_batch", "test_on_batch")
}
SAVE = Hook(
    targets=("keras:Model.save",),
    does="It writes beside the file and renames it. The status names the model that the chief saved last.",
    gone="keep tasks apart that save to the same file",
)
SAVE_WEIGHTS = Hook(
    targets=("keras:Model.save_weights",),
    does="It writes beside the file and renames it.",
    gone="keep tasks apart that save to the same file",
)
SAMPLES_OF_SAVES = Hook(
    targets=("keras.src.saving.saving_lib:get_attr_skipset",),
    does="In a group, Keras makes its samples of optimizers outside of the strategy. So one task can save alone.",
    gone="save a model in one task of a group",
)
ADD_IN_PLACE = Hook(
    targets=("keras:Variable.assign_add", "keras:Variable.assign_sub"),
    does="Under ParameterServer and CentralStorage, variables add by TensorFlow's own operation.",
    gone="count the updates of several workers",
    ends=True,
)
VARIABLE_MADE = Hook(
    targets=("keras:Variable._initialize_with_initializer",),
    does="Variables that a `tf.function` makes for several replicas are made before it runs.",
    gone="make variables in a step of several replicas",
    ends=True,
)
SLOT = Hook(
    targets=("keras:Optimizer.add_variable_from_reference",),
    does="Under ParameterServer, a slot of a variable in shards is cut as the variable is.",
    gone="train variables that a partitioner cuts",
    ends=True,
)
UPDATE_STEP = Hook(
    targets=(f"{_OPTIMIZER}._backend_update_step",),
    does="Under ParameterServer, each shard of a variable is updated on its parameter server.",
    gone="train variables that a partitioner cuts",
    ends=True,
)
WEIGHT_DECAY = Hook(
    targets=(f"{_OPTIMIZER}._apply_weight_decay",),
    does="Under ParameterServer, the weights of each shard decay on its parameter server.",
    gone="train variables that a partitioner cuts",
    ends=True,
)
TAKE = Hook(
    targets=("keras.src.backend.tensorflow.numpy:take",),
    does="Under ParameterServer, rows of a table are looked up where the table is.",
    gone="look up rows without reading the whole table",
)
ADAGRAD_STEP = Hook(
    targets=("keras:optimizers.Adagrad.update_step",),
    does="Under ParameterServer, it reads and writes only the rows of a sparse gradient.",
    gone="update rows without reading the whole table",
)
GLOBAL_GENERATOR = Hook(
    targets=("keras.src.random.seed_generator:global_seed_generator",),
    does="All threads draw from the generator of the thread that trains, which checkpoints keep.",
    gone="restore random numbers",
    lasts="training",
    ends=True,
)


@contextlib.contextmanager
def without_strategy(model: Any) -> Iterator[None]:
    """While this lasts, a model of Keras 3 or tf_keras has no strategy of its own."""
    attributes = vars(model)
    held = {name: attributes[name] for name in ("_distribute_strategy", "_distribution_strategy") if name in attributes}
    if not held:
        raise no_such(type(model), "_distribute_strategy", "predict on one device")
    attributes.update(dict.fromkeys(held))
    try:
        yield
    finally:
        attributes.update(held)


def update_step_of(optimizer: Any, *arguments: Any) -> None:
    """Update variables of TensorFlow's own, with gradients that are summed: by gradients, variables and rate."""
    optimizer._backend_update_step(*arguments)


def decays(optimizer: Any, variable: Any) -> bool:
    """Whether `optimizer` lets the weights of `variable` decay."""
    return bool(optimizer._use_weight_decay(variable))


@contextlib.contextmanager
def under(optimizer: Any, strategy: Any) -> Iterator[None]:
    """While this lasts, a Keras optimizer places variables by that `strategy`."""
    before = read(optimizer, "_distribution_strategy", "train variables that a partitioner cuts")
    optimizer._distribution_strategy = strategy
    try:
        yield
    finally:
        optimizer._distribution_strategy = before


def strategy_of(optimizer: Any) -> Any:
    """The strategy of a Keras optimizer."""
    return optimizer._distribution_strategy


def place_of(optimizer: Any, variable: Any) -> int:
    """The number of a variable in the lists of slots of an optimizer."""
    return int(optimizer._get_variable_index(variable))


def accumulators(optimizer: Any) -> Any:
    """The sums of squares of Adagrad, in the order of variables."""
    return optimizer._accumulators


def value_behind(variable: Any) -> Any:
    """The value of a Keras variable outside of Keras's stateless scopes. None within one."""
    if read(import_module("keras.src.backend"), "in_stateless_scope", "look up rows in place")():
        return None
    return variable._value


def autocast(variable: Any, value: Any) -> Any:
    """`value` in the type that a layer computes with, if it were the value of the Keras `variable`."""
    return variable._maybe_autocast(value)


def global_generator() -> Any:
    """This thread's generator of random numbers, made without a draw from Python's own."""
    before = random.getstate()
    generator = original(GLOBAL_GENERATOR)()
    random.setstate(before)
    return generator


def one_generator(generator: Any) -> AbstractContextManager[None]:
    """While this lasts, all threads draw from this generator.

    Keras has one for each, and each replica is traced in a thread of its own, where none can be made.
    """
    return during(GLOBAL_GENERATOR, lambda _: lambda: generator)
