# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer: turns an ordinary Keras script into a distributed one.

    import dtjob_trainer as dt
    dt.fit(model, x, y, batch_size=64, epochs=20, validation_data=(xv, yv), save="model.keras")

Importing this package imports no TensorFlow (the supervisor lives here too); the first use of a name does.
"""

from typing import TYPE_CHECKING, Any

from dtjob_trainer.process import runtime as _runtime

if TYPE_CHECKING:
    from dtjob_trainer.checkpoint.model_file import save as save
    from dtjob_trainer.data.function import DataContext as DataContext
    from dtjob_trainer.loops.evaluate import evaluate as evaluate
    from dtjob_trainer.loops.fit import fit as fit
    from dtjob_trainer.loops.predict import predict as predict
    from dtjob_trainer.loops.train import train as train
    from dtjob_trainer.placement.tracker import over_all_rows as over_all_rows
    from dtjob_trainer.service.served import over_data_service as over_data_service

_HOMES = {
    "DataContext": "dtjob_trainer.data.function",
    "evaluate": "dtjob_trainer.loops.evaluate",
    "fit": "dtjob_trainer.loops.fit",
    "over_all_rows": "dtjob_trainer.placement.tracker",
    "over_data_service": "dtjob_trainer.service.served",
    "predict": "dtjob_trainer.loops.predict",
    "save": "dtjob_trainer.checkpoint.model_file",
    "train": "dtjob_trainer.loops.train",
}
__all__ = [*_HOMES, "is_chief", "strategy"]


def is_chief() -> bool:
    """Whether this task is the one that may write files: true too where the program runs by hand."""
    return _runtime.current().is_chief


def strategy() -> Any:
    """The `tf.distribute.Strategy` that trains. It is ambient, so that no `with strategy.scope()` is needed.

    With `spec.program.integration: None` the first call makes it ambient. Make that call at the top of the program.
    """
    _runtime.current().take_strategy()
    return _runtime.current().strategy


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dtjob_trainer' has no attribute {name!r}")
