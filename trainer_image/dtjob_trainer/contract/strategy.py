"""What each strategy is like: every question that the trainer asks about one is answered here. No TensorFlow.

How TensorFlow's object for it is made stands in strategies/create.py, what an ambient object is like in ambient.py
beside it; they alone go by the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """What a strategy is like, as far as anything here depends on it."""

    name: str
    """As `spec.strategy` and DTJOB_STRATEGY have it."""
    cluster_roles: tuple[str, ...] = ()
    """The roles that TensorFlow may see in the cluster; empty where each task is a TensorFlow of its own.

    MultiWorkerMirrored with ps in the cluster hangs, as does ParameterServer with an evaluator (TensorFlow 2.21).
    """
    serving_roles: tuple[str, ...] = ()
    """The roles that run a TensorFlow server and not the user's program."""
    dispensable_roles: tuple[str, ...] = ()
    """The roles without a task of which training goes on."""
    synchronous: bool = False
    """Replicas take each step together and sum their gradients; even if there is only one of them."""
    asynchronous: bool = False
    """The chief hands out steps, and who computes one waits for no other: no two runs have the same bits."""
    collective: bool = False
    """Several tasks take each step together, and each has a copy of every variable: what one does, all must do."""
    remote_steps: bool = False
    """Steps run on other machines, so that their inputs must be the examples, not numbers of rows in memory here."""
    shared_variables: bool = False
    """Replicas or workers change one and the same variable: it must add with its own operation."""
    central_storage: bool = False
    """Variables are on one device for the replicas of several: none may have a share of no examples."""
    tpu: bool = False
    """Replicas are a TPU's cores: each takes equally many examples."""

    compiles: bool = False
    """Whether XLA may compile a step: one replica's, as there is no sum over replicas that it would have to take in."""

    @property
    def distributed(self) -> bool:
        """Whether it is a strategy at all, and not TensorFlow's default: as `tf.distribute.has_strategy()`."""
        return self.synchronous or self.asynchronous


TRAITS: Mapping[str, Traits] = {
    traits.name: traits
    for traits in (
        Traits("Default", compiles=True),
        Traits("OneDevice", synchronous=True, compiles=True),
        Traits("Mirrored", synchronous=True),
        Traits("CentralStorage", synchronous=True, shared_variables=True, central_storage=True),
        Traits("MultiWorkerMirrored", cluster_roles=("chief", "worker"), synchronous=True, collective=True),
        Traits(
            "ParameterServer",
            cluster_roles=("chief", "worker", "ps"),
            serving_roles=("worker", "ps"),
            dispensable_roles=("worker",),
            asynchronous=True,
            remote_steps=True,
            shared_variables=True,
        ),
        Traits("TPU", synchronous=True, remote_steps=True, tpu=True),
    )
}
"""By name, in the order in which messages name them."""

ALONE = TRAITS["Default"]
"""Of a program run by hand, and of the evaluator, which computes by itself whatever the others train under."""
