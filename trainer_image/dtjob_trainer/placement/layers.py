# SPDX-License-Identifier: Apache-2.0
"""Layers in a replica's step. Those of Keras and tf_keras themselves are row by row; others follow the rules."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import hooks, keras3, tf_keras
from dtjob_trainer.frameworks.functions import left_unconverted
from dtjob_trainer.placement import kinds, tracker
from dtjob_trainer.placement.kinds import Kind, Mode

_BY_RULES = (".merging", ".lambda_layer", "tf_op_layer")
"""Modules of the packages whose layers hold rows against rows, or run what the program has written."""
_MODELS = (".engine.", ".models.")
"""Modules of models, of which each layer is asked by itself."""


def by_rows(base: type, package: str) -> AbstractContextManager[None]:
    """While this lasts, layers of `package` itself, whose base class is `base`, are row by row in a replica's step."""
    hook = (keras3 if package == "keras" else tf_keras).LAYER_CALLED
    return hooks.during(hook, partial(_by_rows, package), on=base)


def _by_rows(package: str, own: Callable[..., Any]) -> Any:
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = tracker.current()
        if found is None or found.mode is not Mode.STEP or not _is_by_rows(self, package):
            return own(self, *args, **kwargs)

        def given(value: Any) -> Any:
            """What a layer is given: what is no row as one device has it."""
            other = isinstance(value, tf.Tensor) and kinds.kind(value) in (Kind.PARTIAL, Kind.LATER, Kind.SIZE)
            return found.same(value) if other else value

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


def _is_by_rows(layer: Any, package: str) -> bool:
    """Whether `layer`, and each layer in it, is of the package itself."""
    if any(part in type(layer).__module__ for part in (*_BY_RULES, *_MODELS)):
        return False
    modules = [type(each).__module__ for each in keras3.layers_of(layer)]
    inside = all(each.startswith(f"{package}.") and not any(part in each for part in _BY_RULES) for each in modules)
    return inside and getattr(layer, "activity_regularizer", None) is None
