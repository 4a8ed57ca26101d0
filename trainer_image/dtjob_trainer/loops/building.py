"""Makes the variables of a model, of what compile() was given and of optimizers, before the first step."""

from __future__ import annotations

from dtjob_trainer.data import elements
from dtjob_trainer.data.batches import Source
from dtjob_trainer.errors import FitError
from dtjob_trainer.models.compiled import TrainedModel

NOT_STATIC = (
    "model: it needs the static number of rows of a batch, as x.shape[0], which is not known where several replicas or "
    "workers share batches; write keras.ops.shape(x)[0] or tf.shape(x)[0]"
)


def build(trained: TrainedModel, source: Source, *, trains: bool, alone: bool) -> None:
    """Make every variable, for batches of `source`.

    The model is built for batches of any size. If that fails, it is built for the size that all batches have: `call` or
    `train_step` may use `x.shape[0]`, which Keras knows then, too.

    - trains: whether variables are needed that only training uses.
    - alone: whether one replica takes whole batches in this process.

    Raises what the model raises, or FitError if it needs that size and is not alone.
    """
    try:
        _build(trained, source, None, trains)
    except Exception as error:
        if source.rows is None:
            raise
        try:
            _build(trained, source, source.rows, trains)
        except Exception:  # then the size was not the reason
            raise error from None
        if not alone:
            raise FitError(NOT_STATIC) from error


def _build(trained: TrainedModel, source: Source, rows: int | None, trains: bool) -> None:
    spec = elements.with_rows(source.spec(), rows)
    trained.build(*spec)
    if trains:
        trained.build_further(*spec)
