# SPDX-License-Identifier: Apache-2.0
"""What dtjob replaces in tf_keras once the program imports it, and tf_keras's private names."""

import random
from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks import packages
from dtjob_trainer.frameworks.hooks import Hook, attribute, imported, in_training, method, read
from dtjob_trainer.frameworks.keras3 import hooks_of

_MODEL = "tf_keras.src.engine.training:Model"
_LEGACY = "tf_keras.src.saving.legacy.saved_model"

FIT, EVALUATE, PREDICT, PREDICT_ON_BATCH, SAVE, SAVE_WEIGHTS = hooks_of(_MODEL)
"""On a TPU the first four are tf_keras's own."""
_SEEDS = "restore the random numbers of a layer"
SAVED_MODEL_WRITTEN = Hook(
    targets=(f"{_LEGACY}.save:save",),
    does="In a group, a task that is not the chief writes to a directory of its own, `.TASK-NAME`.",
    gone="keep tasks apart that save to the same directory",
)
SAVED_MODEL_READ = Hook(
    targets=("tf_keras.src.saving.legacy.save:load_model",),
    does="In a group, a task that is not the chief reads what it has written from its own directory.",
    gone="keep tasks apart that save to the same directory",
)
LAYER_CALLED = in_training(
    "tf_keras:layers.Layer.__call__",
    does="In a replica's step, a layer of tf_keras keeps the rows of the replica apart.",
    gone="follow the rows of a replica",
)
LOSS_SCALED = in_training(
    "tf_keras.src.utils.losses_utils:scale_loss_for_distribution",
    does="A loss is not divided by the number of replicas.",
    gone="have the loss of one device on several replicas",
)
SUMS_SHOWN = in_training(
    "tf_keras.src.engine.compile_utils:tf",
    does="The value shown for a loss that is a sum is not multiplied by the number of replicas.",
    gone="show the losses of one device on several replicas",
)
REDUCTION = in_training(
    "tf_keras:losses.Loss._get_reduction",
    does="A loss in a replica's step may take a mean.",
    gone="have the loss of one device on several replicas",
)
GRADIENTS_SUMMED = in_training(
    "tf_keras.src.optimizers.utils:all_reduce_sum_gradients",
    does="Gradients are summed over replicas as on one device.",
    gone="sum gradients as on one device",
)
MEANS = Hook(
    targets=("tf_keras.src.losses:Loss._get_reduction",),
    does="Outside of replicas, a loss may take a mean.",
    gone="call a loss outside of replicas",
)
SEED_SOURCE = Hook(
    targets=("tf_keras.src.backend:_SEED_GENERATOR",),
    does="All threads of replicas take the seeds of layers from the source that `set_random_seed` has set.",
    gone="give a model that a step builds the first weights that it has on one device",
)

counter_of = attribute("_train_counter", "restore the number of steps")
"""The variable in which a model counts its steps."""
conformed = method("_conform_to_outputs", "build losses and metrics")
"""Given compiled losses or metrics, outputs, and targets or weights: the latter in the structure of the outputs."""
warn_of_missing = imported("tf_keras.src.optimizers.utils:filter_empty_gradients")
"""Given pairs of gradients and variables: warn of variables without a gradient, as an optimizer does."""


def allow_means(loss: Any, allowed: bool) -> bool:
    """Say whether a `loss` may take means under a strategy. Returns what was said before."""
    before = bool(loss._allow_sum_over_batch_size)
    loss._allow_sum_over_batch_size = allowed
    return before


def legacy_rate(optimizer: Any) -> Any:
    """The learning rate of an older optimizer, a variable or a schedule."""
    return optimizer._hyper["learning_rate"]


def is_built(optimizer: Any) -> bool:
    """Whether an optimizer has its variables. Before, it has no such attribute."""
    return bool(getattr(optimizer, "_built", False))


def is_compiled(model: Any) -> bool:
    """Whether a model was compiled."""
    return bool(read(model, "_is_compiled", "see whether a model was compiled"))


def in_order(model: Any, logs: Any) -> Any:
    """What `Model.evaluate` returns of these logs."""
    return import_module("tf_keras.src.engine.training").flatten_metrics_in_order(logs, model.metrics_names)


def is_functional(model: Any) -> bool:
    """Whether a model calls its layers as the package does, and so has specs of its outputs."""
    import tf_keras

    functional = import_module("tf_keras.src.engine.functional").Functional
    return type(model).call in (functional.call, tf_keras.Sequential.call)


def random_layers(model: Any) -> list[Any]:
    """The layers of a model that draw random numbers."""
    kind = import_module("tf_keras.src.engine.base_layer").BaseRandomLayer
    layers = read(model, "_flatten_layers", "see the layers of a model")()
    return [layer for layer in layers if isinstance(layer, kind)]


def keeps_seed(layer: Any) -> bool:
    """Whether a random layer draws from a generator whose state is a variable."""
    generator = read(layer, "_random_generator", _SEEDS)
    return bool(read(generator, "_rng_type", _SEEDS) != type(generator).RNG_LEGACY_STATEFUL)


def keep_seeds(model: Any) -> None:
    """Have the random layers of a model draw from such generators: otherwise nobody could save their state.

    Layers and weights that the program makes later get the seeds that they would have got without this.
    """
    layers = [layer for layer in random_layers(model) if not keeps_seed(layer)]
    source = getattr(read(import_module("tf_keras.src.backend"), "_SEED_GENERATOR", _SEEDS), "generator", random)
    before = source.getstate()
    for layer in layers:
        generator = layer._random_generator
        generator._rng_type, generator._built = type(generator).RNG_STATEFUL, False
        generator._maybe_init()
    source.setstate(before)


def seeds_of(layer: Any) -> list[Any]:
    """The variables that a random layer keeps its state in."""
    generator = read(read(layer, "_random_generator", _SEEDS), "_generator", _SEEDS)
    return [] if generator is None else [generator.state]


def build_legacy(optimizer: Any, variables: Any) -> None:
    """Make the variables of an older optimizer for those that it trains."""
    home = "tf_keras.src.optimizers.utils"
    utils = import_module(home)
    if packages.is_of(optimizer.gradient_aggregator, home):  # it would hold on to the function that we replace
        optimizer.gradient_aggregator = lambda pairs: utils.all_reduce_sum_gradients(pairs)
    read(optimizer, "_create_all_weights", "make the variables of an optimizer")(variables)


def losses_of(container: Any) -> list[Any]:
    """The losses that a model was compiled with, of its `compiled_loss`; None for an output without one."""
    import tensorflow as tf

    return list(tf.nest.flatten(read(container, "_losses", "see which losses a model was compiled with")))
