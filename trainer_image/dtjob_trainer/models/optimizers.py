# SPDX-License-Identifier: Apache-2.0
"""A model's optimizers: which there are, what of them cannot be right under a strategy, and their learning rates."""

from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.frameworks import packages, tf_keras
from dtjob_trainer.steps.optimizer_steps import innermost

SCALED_BY_REPLICAS = ("initial_learning_rate", "end_learning_rate", "warmup_target", "values")
"""What of the settings of Keras's schedules is a learning rate; every schedule is linear in its rates."""


def limits(optimizer: Any, traits: Traits) -> Iterator[str]:
    """What of `optimizer` (Keras 3's) cannot be right under a strategy with these traits, and what to write instead.

    A MultiOptimizer that is given a function knows its inner optimizers only once it is built.
    """
    inner = innermost(optimizer)
    homes = [packages.home(type(each), "apply") for each in (optimizer, *inner)]
    overrides = any(home is not None and not packages.is_of(home, "keras.") for home in homes)
    for each in (optimizer, *(each for each in inner if each is not optimizer)):
        if traits.asynchronous and getattr(each, "gradient_accumulation_steps", None):
            yield (
                "gradient_accumulation_steps would mix the gradients of workers that know nothing of each other; "
                "use a larger batch_size"
            )
        if overrides and traits.distributed and getattr(each, "gradient_accumulation_steps", None):
            yield "gradient_accumulation_steps needs Keras's own apply(); leave the override out"


def remarks(optimizer: Any) -> Iterator[str]:
    """In what `optimizer` (Keras 3's, not built yet) trains otherwise than in Keras's own fit, each with its reason."""
    kind = getattr(keras.optimizers, "ScheduleFreeAdamW", ())
    if any(isinstance(each, kind) and not each.built for each in innermost(optimizer)):
        yield (
            "ScheduleFreeAdamW starts from the model's weights here, as in Keras's eager mode and under tf.distribute; "
            "Keras's own fit() starts it from zero, so that its first step forgets them, unless "
            "optimizer.build(model.trainable_variables) was called before"
        )


def of_model(model: Any, kinds: tuple[type, ...] = (keras.optimizers.Optimizer,)) -> list[Any]:
    """The optimizers of these `kinds` that `model` was compiled with or has as attributes, or in lists and dicts.

    In an order that is the same in every process of a program.
    """
    unique: list[Any] = []
    for value in [getattr(model, "optimizer", None), *_leaves(list(vars(model).values()))]:
        if isinstance(value, kinds) and not any(value is other for other in unique):
            unique.append(value)
    return unique


def _leaves(structure: Any) -> Iterator[Any]:
    """The leaves of lists, tuples and dicts."""
    if isinstance(structure, Mapping):
        structure = list(structure.values())
    if isinstance(structure, list | tuple):
        for part in structure:
            yield from _leaves(part)
    else:
        yield structure


def scale_learning_rate(optimizer: Any, factor: float, *, schedules_alone: bool = False) -> None:
    """Multiply the learning rate of `optimizer` (of those inside it), or every rate of its schedule, by `factor`.

    - schedules_alone: leave a rate that is one number, which checkpoints have, as it is.

    Raises ValueError for a schedule or function that is not Keras's own: its rates have no name.
    """
    for inner in innermost(optimizer):
        rate = inner._learning_rate if hasattr(inner, "_learning_rate") else tf_keras.legacy_rate(inner)
        if not isinstance(rate, keras.Variable | tf.Variable):  # tf_keras's numbers are TensorFlow's variables
            inner.learning_rate = _scaled(rate, factor)
        elif not schedules_alone:
            inner.learning_rate = float(rate.numpy()) * factor


def _scaled(rate: Any, factor: float) -> Any:
    """A schedule with all of its rates multiplied."""
    if not packages.is_of(type(rate)):
        raise ValueError(
            f"scale_lr cannot scale {type(rate).__name__}, which is not one of Keras's schedules; multiply its rates "
            "by dt.strategy().num_replicas_in_sync in your program"
        )
    settings = dict(rate.get_config())
    for name in SCALED_BY_REPLICAS:
        value = settings.get(name)
        if value is not None:
            settings[name] = [each * factor for each in value] if isinstance(value, list | tuple) else value * factor
    return type(rate).from_config(settings)
