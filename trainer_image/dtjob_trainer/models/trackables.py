# SPDX-License-Identifier: Apache-2.0
"""What `train` is given as `variables`: models, optimizers, metrics, seeds, variables → the state of a custom loop."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from dtjob_trainer.errors import VariablesError
from dtjob_trainer.frameworks import tensorflow, tf_keras
from dtjob_trainer.models import optimizers
from dtjob_trainer.models.kept_variables import METRIC, State, as_keras3, copies_of, is_local
from dtjob_trainer.strategies.collective import Group
from dtjob_trainer.strategies.sharded_variables import is_sharded


class Trackables:
    """All variables below `variables`: a structure of dicts, lists and tuples whose leaves have variables.

    Leaves are models, layers, optimizers and metrics (of Keras 3 and tf_keras), Keras SeedGenerators,
    tf.random.Generators, tf.Modules, and single variables. Raises VariablesError for anything else, and for models and
    optimizers that have no variables yet.
    """

    def __init__(self, variables: Any, group: Group) -> None:
        self._group = group
        self._shared: dict[str, Any] = {}
        self._local: dict[str, Any] = {}
        self._averaged: list[Any] = []
        self._handles: set[int] = set()
        self.optimizers: list[Any] = []
        """Every optimizer among them, also those that a model was compiled with."""
        for place, leaf in _leaves("variables", variables):
            is_metric = _is_a(leaf, "metrics", "Metric")
            found = [leaf] if _is_a(leaf, "optimizers", "Optimizer") else _optimizers_of(leaf)
            self.optimizers += [each for each in found if not any(each is other for other in self.optimizers)]
            for number, variable in enumerate(_variables_of(place, leaf)):
                self._add(f"{place}/{number:04d}", variable, is_metric)
        if not self._handles:
            raise VariablesError("variables is empty; name the models and optimizers that step_fn changes")

    def state(self) -> State:
        """What a checkpoint keeps of them."""
        return State(self._group, self._shared, self._local, self._averaged)

    def _add(self, prefix: str, variable: Any, is_metric: bool) -> None:
        known = as_keras3(variable)
        if is_sharded(known):
            raise VariablesError(
                f"strategyOptions.partitioner cuts variable {known.path} into shards, of which step_fn cannot take "
                "gradients; leave partitioner out, or train with dtjob_trainer.fit"
            )
        handles = {id(copy.handle) for copy in copies_of(self._group.strategy, known)}
        if handles <= self._handles:  # a model and one of its layers, say
            return
        self._handles |= handles
        local = is_local(known)
        kind = METRIC if local and is_metric else ""
        (self._local if local else self._shared)[f"{kind}{prefix}/{known.path}"] = known
        if local and not is_metric and tf.as_dtype(known.dtype).is_floating:
            self._averaged.append(known)


def _leaves(place: str, structure: Any) -> Iterator[tuple[str, Any]]:
    """Every leaf with its place, such as `variables/optimizers/0`."""
    if isinstance(structure, Mapping):
        for key, part in structure.items():
            yield from _leaves(f"{place}/{key}", part)
    elif isinstance(structure, list | tuple):
        for number, part in enumerate(structure):
            yield from _leaves(f"{place}/{number}", part)
    else:
        yield place, structure


def _variables_of(place: str, leaf: Any) -> list[Any]:
    """The variables of one leaf, as Keras or TensorFlow has them."""
    if isinstance(leaf, keras.Variable | tf.Variable):
        return [leaf]
    if isinstance(leaf, keras.random.SeedGenerator):
        return [leaf.state]
    if _is_a(leaf, "optimizers.legacy", "Optimizer"):
        raise VariablesError(
            f"{place}: legacy optimizers make their variables too late; use tf_keras.optimizers.Adam …"
        )
    if _is_a(leaf, "optimizers", "Optimizer"):
        if not (leaf.built if isinstance(leaf, keras.optimizers.Optimizer) else tf_keras.is_built(leaf)):
            raise VariablesError(
                f"{place}: the optimizer has no variables yet; call its build(model.trainable_variables) before train()"
            )
    elif _is_a(leaf, "layers", "Layer") and not leaf.built:
        raise VariablesError(
            f"{place}: the model has no variables yet; begin it with keras.Input, or call it on one batch"
        )
    if isinstance(leaf, keras.Model):
        return [*leaf.variables, *(variable for optimizer in _optimizers_of(leaf) for variable in optimizer.variables)]
    if isinstance(leaf, keras.layers.Layer | keras.optimizers.Optimizer | keras.metrics.Metric):
        return list(leaf.variables)
    if tensorflow.is_trackable(leaf):  # tf_keras's, modules, tf.random.Generator
        # what tf.train.Checkpoint would save: tf_keras's `variables` leave out learning rates and seeds
        return [part for part in tf.train.TrackableView(leaf).descendants() if isinstance(part, tf.Variable)]
    raise VariablesError(
        f"{place}: a {type(leaf).__name__} has no variables to save; give models, optimizers, metrics, seed generators "
        "or variables"
    )


def _optimizers_of(leaf: Any) -> list[Any]:
    """The optimizers with variables of a Keras 3 model; of anything else none."""
    return [each for each in optimizers.of_model(leaf) if each.built] if isinstance(leaf, keras.Model) else []


def _is_a(leaf: Any, module: str, name: str) -> bool:
    """Whether `leaf` is one of Keras 3's or, where the program has imported it, tf_keras's."""
    for package in ("keras", "tf_keras"):
        home: Any = sys.modules.get(package)
        for part in module.split("."):
            home = getattr(home, part, None)
        base = getattr(home, name, None)
        if isinstance(base, type) and isinstance(leaf, base):
            return True
    return False
