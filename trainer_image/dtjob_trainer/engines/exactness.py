# SPDX-License-Identifier: Apache-2.0
"""Why a restarted run would not have the same bits: what a step uses that no checkpoint has, as it was traced."""

from typing import Any

import tensorflow as tf

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.data import randomness
from dtjob_trainer.data.batches import Source
from dtjob_trainer.frameworks import tensorflow
from dtjob_trainer.models.kept_variables import State
from dtjob_trainer.models.trackables import Trackables


def of_devices() -> list[str]:
    """The reason in what this process trains on."""
    if not tf.config.list_physical_devices("GPU") or tensorflow.is_deterministic():
        return []
    return ["GPUs add up in no fixed order, unless tf.config.experimental.enable_op_determinism() is called before"]


def of_model(concrete: Any, state: State) -> list[str]:
    """The reasons in `concrete`, a traced step of `fit`, whose variables `state` keeps."""
    found = of_devices()
    found += of_operations(concrete.graph, "the model", "a SeedGenerator that a layer has as an attribute")
    forgotten = state.not_among(concrete.variables)
    if forgotten:
        found.append(
            f"the model uses {', '.join(forgotten)}, which none of its layers, metrics and optimizers tracks: lost in "
            "a restart; make it with a layer's add_weight()"
        )
    return found


def of_operations(graph: Any, user: str, seeds: str) -> list[str]:
    """The reasons in the operations of `graph`, a traced step of `user`. `seeds`: what random numbers are to use."""
    own, found = randomness.with_own_state(randomness.operations(graph)), []
    if random := own - randomness.PYTHON_OPERATIONS:
        found.append(
            f"{user} uses {', '.join(sorted(random))}, whose state nobody can save: use keras.random with {seeds}, or "
            "tf.random.stateless_…"
        )
    if own & randomness.PYTHON_OPERATIONS:
        found.append(
            f"{user} calls Python code (py_function or numpy_function), which may keep a state that no checkpoint has; "
            "if it keeps none, say so by tf.numpy_function(…, stateful=False)"
        )
    return found


def of_custom_step(concrete: Any, source: Source, known: Trackables, traits: Traits) -> list[str]:
    """The reasons in `concrete`, the traced `step_fn` of `train`, in its data, and in a strategy with these traits."""
    found = of_devices()
    if traits.asynchronous:
        found.append(f"{traits.name} is asynchronous")
    if not source.exact:
        found.append(source.inexact)
    found += of_operations(concrete.graph, "step_fn", "a SeedGenerator in variables")
    forgotten = known.state().not_among(concrete.variables)
    if forgotten:
        found.append(f"step_fn uses {', '.join(forgotten)}, not in variables: lost in a restart")
    return found
