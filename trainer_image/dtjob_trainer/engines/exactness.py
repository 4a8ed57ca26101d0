# SPDX-License-Identifier: Apache-2.0
"""Why a restarted run would not have the same bits: what a step uses that no checkpoint has, as it was traced."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dtjob_trainer.data import randomness
from dtjob_trainer.frameworks import tensorflow


def of_devices() -> list[str]:
    """The reason in what this process trains on."""
    if not tf.config.list_physical_devices("GPU") or tensorflow.is_deterministic():
        return []
    return ["GPUs add up in no fixed order, unless tf.config.experimental.enable_op_determinism() is called before"]


def of_step(concrete: Any, user: str, seeds: str, not_among: Callable[[Any], list[str]], lost: str) -> list[str]:
    """The reasons in `concrete`, a traced step of `user`, and in the devices.

    - seeds: what random numbers are to use.
    - not_among: the names of those of its variables that no checkpoint keeps. `lost`: what to say of them.
    """
    own, found = randomness.with_own_state(randomness.operations(concrete.graph)), of_devices()
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
    if forgotten := not_among(concrete.variables):
        found.append(f"{user} uses {', '.join(forgotten)}, {lost}")
    return found
