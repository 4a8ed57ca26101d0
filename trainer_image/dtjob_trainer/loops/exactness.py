"""What a training step of `fit` uses that no checkpoint has, as it was seen to when it was traced."""

from __future__ import annotations

from typing import Any

from dtjob_trainer.data import random_operations
from dtjob_trainer.models.variables import State


def reasons(concrete: Any, state: State) -> list[str]:
    """Why a restarted run would not have the same bits: what of `concrete`, a traced step, `state` does not keep."""
    found = []
    random = random_operations.in_graph(concrete.graph)
    if random:
        found.append(
            f"the model uses {', '.join(sorted(random))}, whose state nobody can save: use keras.random with a "
            "SeedGenerator that a layer has as an attribute, or tf.random.stateless_…"
        )
    forgotten = state.not_among(concrete.variables)
    if forgotten:
        found.append(
            f"the model uses {', '.join(forgotten)}, which none of its layers, metrics and optimizers tracks: lost in "
            "a restart; make it with a layer's add_weight()"
        )
    return found
