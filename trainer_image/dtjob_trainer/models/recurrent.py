# SPDX-License-Identifier: Apache-2.0
"""States of stateful recurrent layers: no layer tracks them, and each goes on in its row of the batch before."""

from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import keras3


def states_of(model: Any) -> list[Any]:
    """The variables that hold the states of stateful layers of `model` (of either package), as the package has them."""
    found = [getattr(layer, "states", None) for layer in keras3.layers_of(model) if _keeps_states(layer)]
    # tf_keras has None for states that are not made yet
    return list({id(v): v for v in tf.nest.flatten(found) if v is not None}.values())


def why_not(model: Any) -> str | None:
    """Why `model` cannot be trained by several replicas or workers; None where nothing of this kind is in the way."""
    name = next((layer.name for layer in keras3.layers_of(model) if _keeps_states(layer)), None)
    if name is None:
        return None
    return (
        f"model: layer {name} is stateful: its states belong to the rows of one whole batch, which several replicas or "
        "workers cut up; train it under Default or OneDevice, or without stateful=True"
    )


def _keeps_states(layer: Any) -> bool:
    return bool(getattr(layer, "stateful", False)) and hasattr(layer, "cell")
