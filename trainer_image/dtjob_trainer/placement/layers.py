# SPDX-License-Identifier: Apache-2.0
"""Layers in a replica's step. Those of Keras and tf_keras themselves are row by row; others follow the rules."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks, keras3, tf_keras
from dtjob_trainer.frameworks.functions import left_unconverted
from dtjob_trainer.placement import kinds, ragged, tracker
from dtjob_trainer.placement.kinds import Kind, Mode

_BY_RULES = (".merging", ".lambda_layer", "tf_op_layer")
"""Modules of the packages whose layers hold rows against rows, or run what the program has written."""
_MODELS = (".engine.", ".models.")
"""Modules of models, of which each layer is asked by itself."""
_FUNCTIONS = ("activation", "recurrent_activation")
"""Attributes with the functions that a layer calls."""
_LIBRARIES = ("keras", "tf_keras", "tensorflow")


def by_rows(base: type, package: str) -> AbstractContextManager[None]:
    """While this lasts, layers of `package` itself, whose base class is `base`, are row by row in a replica's step."""
    hook = (keras3 if package == "keras" else tf_keras).LAYER_CALLED
    return hooks.during(hook, partial(_by_rows, package), on=base)


def _by_rows(package: str, own: Callable[..., Any]) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = tracker.current()
        if found is None or found.mode is not Mode.STEP or not _is_by_rows(self, package, (args, kwargs)):
            return own(self, *args, **kwargs)

        def given(value: Any) -> Any:
            """What a layer is given: what is no row as one device has it."""
            if not isinstance(value, tf.Tensor):
                return value
            value = ragged.as_rows(found, value)
            return found.same(value) if kinds.kind(value) in (Kind.PARTIAL, Kind.LATER, Kind.SIZE) else value

        args, kwargs = tf.nest.map_structure(given, (args, kwargs))
        parts = (kinds.of(each) for each in tf.nest.flatten((args, kwargs), expand_composites=True))
        rows = next((place for place in parts if place is not None and place.kind is Kind.ROWS), None)
        with found.within(Mode.LAYER):
            outputs = own(self, *args, **kwargs)
        for output in tf.nest.flatten(outputs):
            if rows is not None and isinstance(output, tf.Tensor) and kinds.is_open(output):
                kinds.put(output, rows)
        return outputs

    return left_unconverted(call)


def _is_by_rows(layer: Any, package: str, arguments: Any) -> bool:
    """Whether `layer`, and each layer in it, is of the package itself, and uses no other rows than it is given."""
    if any(part in type(layer).__module__ for part in (*_BY_RULES, *_MODELS)):
        return False
    given = [each for each in tf.nest.flatten(arguments) if isinstance(each, tf.Tensor) and kinds.is_open(each)]
    if {Kind.ROWS, None} <= {kinds.kind(each) for each in given}:  # this replica's beside what may be all rows
        return False
    ranks = {each.shape.rank for each in given}
    return getattr(layer, "activity_regularizer", None) is None and all(
        type(each).__module__.startswith(f"{package}.")
        and not any(part in type(each).__module__ for part in _BY_RULES)
        and not any(_is_own(getattr(each, name, None)) for name in _FUNCTIONS)
        and ranks.isdisjoint(-axis for axis in _axes(each))
        and 0 not in _axes(each)
        for each in keras3.layers_of(layer)
    )


def _axes(layer: Any) -> list[int]:
    return [axis for axis in tf.nest.flatten(getattr(layer, "axis", None)) if isinstance(axis, int)]


def _is_own(function: Any) -> bool:
    """Whether a layer calls a function of the program."""
    module = getattr(function, "__module__", None) or ""
    return callable(function) and module.partition(".")[0] not in _LIBRARIES
