# SPDX-License-Identifier: Apache-2.0
"""The traits of each strategy. Code of the trainer asks for a trait here and does not compare names. No TensorFlow.

Two files do go by the name: strategies/create.py, which makes TensorFlow's object, and ambient.py beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """The traits of one strategy, as far as the trainer needs them."""

    name: str
    """As in `spec.strategy` and DTJOB_STRATEGY."""
    cluster_roles: tuple[str, ...] = ()
    """The roles that TensorFlow may see in the cluster. Empty if each task runs TensorFlow by itself.

    TensorFlow 2.21 hangs under MultiWorkerMirrored with ps in the cluster, and under ParameterServer with an evaluator.
    """
    serving_roles: tuple[str, ...] = ()
    """The roles that run a TensorFlow server instead of the user's program."""
    dispensable_roles: tuple[str, ...] = ()
    """The roles that training can go on without, if one of their tasks is lost."""
    synchronous: bool = False
    """Replicas take each step together and sum their gradients. True even if there is only one replica."""
    asynchronous: bool = False
    """The chief hands out steps, and workers do not wait for each other. So no two runs have the same bits."""
    collective: bool = False
    """Several tasks take each step together, and each has a copy of every variable. All must do the same."""
    remote_steps: bool = False
    """Steps run on other machines. So their inputs must be the examples, not row numbers of local memory."""
    shared_variables: bool = False
    """Replicas or workers change the same variable. So it must add with its own operation."""
    central_storage: bool = False
    """Variables are on one device, and replicas are on several. No replica may have an empty share of the examples."""
    tpu: bool = False
    """Replicas are the cores of a TPU. Each must get the same number of examples."""

    compiles: bool = False
    """Whether XLA may compile a step. That needs a step of one replica, without a sum over replicas."""

    @property
    def distributed(self) -> bool:
        """Whether it is not TensorFlow's default strategy, as `tf.distribute.has_strategy()` says."""
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
"""By name, in the order in which messages list them."""

ALONE = TRAITS["Default"]
"""The traits for a program run by hand, and for the evaluator, which always computes by itself."""
