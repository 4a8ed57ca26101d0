# SPDX-License-Identifier: Apache-2.0
"""A simulated cluster whose job trains already."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World


@contextmanager
def running(*arguments: Any, **job: Any) -> Iterator[World]:
    """A job whose pods all run."""
    with World(builders.job(*arguments, **job)) as made:
        made.run(1)
        all_run(made)
        yield made


def all_run(made: World) -> None:
    """The kubelets start all pods that are there."""
    for name in made.pods:
        made.cluster.change("Pod", name, lambda one: one.update(status=builders.running()))
    made.run(1)
