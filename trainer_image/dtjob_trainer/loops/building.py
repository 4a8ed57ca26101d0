# SPDX-License-Identifier: Apache-2.0
"""Makes the variables of a model, of what compile() was given and of optimizers, and then what runs its steps."""

from collections.abc import Collection
from typing import Any

import keras

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.data import elements
from dtjob_trainer.data.batches import Source
from dtjob_trainer.engines.custom_step import CustomStep
from dtjob_trainer.engines.engine import Engine, Phase
from dtjob_trainer.engines.on_tpu import TpuEngine
from dtjob_trainer.engines.parameter_server import ParameterServerEngine
from dtjob_trainer.engines.synchronous import SynchronousEngine
from dtjob_trainer.errors import FitError
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.strategies.collective import Group

NOT_STATIC = (
    "model: it needs the static number of rows of a batch, as x.shape[0], which is not known where several replicas or "
    "workers share batches; write keras.ops.shape(x)[0] or tf.shape(x)[0]"
)

NO_TARGETS = (
    "y: the model was compiled with a loss, which compares outputs with targets, and there are none; give y, or a "
    "dataset of pairs (x, y); a tuple as x has several inputs"
)


def build(trained: TrainedModel, source: Source, group: Group, traits: Traits, *, trains: bool) -> None:
    """Make every variable, for batches of `source` that the replicas of `group` share.

    The model is built for batches of any size. If that fails, it is built for the size that all batches have: `call` or
    `train_step` may use `x.shape[0]`, which Keras knows then, too.

    - traits: what the strategy is like.
    - trains: whether variables are needed that only training uses.

    Raises what the model raises. Raises FitError if it needs targets that the data lacks, or if it needs that size and
    one replica in this process does not get whole batches.
    """
    try:
        _build(trained, source, None, trains)
    except Exception as error:
        if source.spec()[1] is None and trained.needs_targets:
            raise FitError(NO_TARGETS) from error
        if source.rows is None:
            raise
        try:
            _build(trained, source, source.rows, trains)
        except Exception:  # then the size was not the reason
            raise error from None
        if group.replicas > 1 or traits.asynchronous:
            raise FitError(NOT_STATIC) from error


def _build(trained: TrainedModel, source: Source, rows: int | None, trains: bool) -> None:
    spec = elements.with_rows(source.spec(), rows)
    trained.build(*spec)
    if trains:
        trained.build_further(*spec)


def engine_of(trained: TrainedModel, group: Group, traits: Traits, watched: Collection[Phase] = ()) -> Engine:
    """The engine that runs steps of `trained`, which is built, under a strategy with these traits.

    - watched: the phases of which callbacks see each step.
    """
    if traits.asynchronous:
        return ParameterServerEngine(trained, group, watched)
    # in a custom loop on a TPU, the program has distributed the data itself
    of_tpu = traits.tpu and not isinstance(trained, CustomStep)
    return (TpuEngine if of_tpu else SynchronousEngine)(trained, group, watched)


def shapes_of(model: Any, spec: tuple[Any, Any, Any]) -> str:
    """What `fit` was given, `spec` being (x, y, sample weights) of a batch: `x (None, 8), y (None, 7), …`."""
    parts = {"x": spec[0], "y": spec[1]}
    parts |= {"the model takes": getattr(model, "inputs", None), "and gives": getattr(model, "outputs", None)}
    told = []
    for name, part in parts.items():
        tensors = [each for each in keras.tree.flatten(part) if getattr(each, "shape", None) is not None]
        if tensors:
            told.append(f"{name} {' and '.join(str(tuple(each.shape)) for each in tensors)}")
    return ", ".join(told)
