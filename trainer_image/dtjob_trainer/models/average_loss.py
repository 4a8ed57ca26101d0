# SPDX-License-Identifier: Apache-2.0
"""`tf.nn.compute_average_loss` and `tf.nn.scale_regularization_loss` in a replica's step: as on one device.

TensorFlow divides by the number of replicas, so that the sum over replicas is right. Here losses that are called for
one device are made right afterwards, whatever is in them.
"""

from contextlib import AbstractContextManager
from typing import Any

from dtjob_trainer.frameworks import hooks
from dtjob_trainer.frameworks.tensorflow import AVERAGES
from dtjob_trainer.placement import tracker
from dtjob_trainer.placement.cuts import unscaled


class _OneDevice:
    """TensorFlow's module `distribute_lib`, where a loss is computed as on one device."""

    num_replicas_in_sync = 1

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def get_strategy(self) -> Any:
        """The strategy, or what says that there is one replica."""
        return self if _as_on_one_device() else self._own.get_strategy()

    def in_cross_replica_context(self) -> bool:
        """Whether this is outside a replica's step, where TensorFlow refuses to average."""
        return not _as_on_one_device() and self._own.in_cross_replica_context()


def of_one_device() -> AbstractContextManager[None]:
    """While this lasts, both functions are as above where a replica's loss is computed as on one device."""
    return hooks.during(AVERAGES, _OneDevice)


def _as_on_one_device() -> bool:
    return tracker.current() is not None or unscaled.get()
