# SPDX-License-Identifier: Apache-2.0
"""Which way steps are run: the engine of a compiled model, or the steps of a custom loop, for each kind of strategy."""

from collections.abc import Callable, Collection
from typing import Any

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.engines.custom_step import CustomStep
from dtjob_trainer.engines.engine import Engine, Phase
from dtjob_trainer.engines.on_tpu import TpuEngine
from dtjob_trainer.engines.parameter_server import ParameterServerEngine
from dtjob_trainer.engines.synchronous import SynchronousEngine
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.strategies.collective import Group


def engine(trained: TrainedModel, group: Group, traits: Traits, watched: Collection[Phase] = ()) -> Engine:
    """The engine that runs steps of `trained`, which is built, under a strategy with these traits.

    - watched: the phases of which callbacks see each step.
    """
    if traits.asynchronous:
        return ParameterServerEngine(trained, group, watched)
    return (TpuEngine if traits.tpu else SynchronousEngine)(trained, group, watched)


def custom_engine(step_fn: Callable[[Any], Any], rows: int | None, group: Group, traits: Traits) -> Engine:
    """The engine that runs a custom loop's `step_fn` under a strategy with these traits.

    - rows: the examples of all replicas at each step. None: any number.
    """
    shares = 1 if traits.asynchronous else group.replicas
    step: Any = CustomStep(step_fn, rows // shares if rows is not None else None)
    return (ParameterServerEngine if traits.asynchronous else SynchronousEngine)(step, group)
