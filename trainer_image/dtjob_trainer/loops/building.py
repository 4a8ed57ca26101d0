"""Makes the variables of a model, of what compile() was given and of optimizers, before the first step."""

from __future__ import annotations

from dtjob_trainer.data import elements
from dtjob_trainer.data.batches import Source
from dtjob_trainer.models.compiled import TrainedModel


def build(trained: TrainedModel, source: Source, replicas: int, *, trains: bool) -> None:
    """Make every variable, for batches of `source` that so many replicas share.

    The model is built for batches of any size. If that fails, it is built for the rows of one replica, if all batches
    are full: `call` or `train_step` may use `x.shape[0]`, which Keras knows then, too.

    - trains: whether variables are needed that only training uses.

    Raises what the model raises.
    """
    try:
        _build(trained, source, None, trains)
    except Exception as error:
        rows = source.rows_of_replica(replicas)
        if rows is None:
            raise
        try:
            _build(trained, source, rows, trains)
        except Exception:  # then the size was not the reason
            raise error from None


def _build(trained: TrainedModel, source: Source, rows: int | None, trains: bool) -> None:
    spec = elements.with_rows(source.spec(), rows)
    trained.build(*spec)
    if trains:
        trained.build_further(*spec)
