"""dtjob_trainer.loops.callbacks: which callbacks hear of each batch."""

from __future__ import annotations

from typing import Any

import pytest

keras = pytest.importorskip("keras")
callbacks = pytest.importorskip("dtjob_trainer.loops.callbacks")


def at_epochs_end(base: Any) -> Any:
    """A user's subclass that does something at the end of an epoch alone."""
    return type(f"My{base.__name__}", (base,), {"on_epoch_end": lambda self, epoch, logs=None: None})


def at_batches_end(base: Any) -> Any:
    return type(f"My{base.__name__}", (base,), {"on_train_batch_end": lambda self, batch, logs=None: None})


@pytest.mark.parametrize(
    ("made", "wants"),
    [
        (lambda: keras.callbacks.EarlyStopping(), False),
        (lambda: keras.callbacks.TensorBoard("logs"), False),
        (lambda: keras.callbacks.TensorBoard("logs", update_freq=5), True),
        (lambda: at_epochs_end(keras.callbacks.TensorBoard)("logs"), False),
        (lambda: at_epochs_end(keras.callbacks.TensorBoard)("logs", update_freq="batch"), True),
        (lambda: at_batches_end(keras.callbacks.TensorBoard)("logs"), True),
        (lambda: at_epochs_end(keras.callbacks.ModelCheckpoint)("m.keras"), False),
        (lambda: at_epochs_end(keras.callbacks.ModelCheckpoint)("m.keras", save_freq=3), True),
        (lambda: at_epochs_end(keras.callbacks.Callback)(), False),
        (lambda: at_batches_end(keras.callbacks.Callback)(), True),
        (lambda: keras.callbacks.LambdaCallback(on_epoch_end=print), False),
    ],
)
def test_who_does_nothing_at_a_batch_does_not_hear_of_it(made: Any, wants: bool) -> None:
    """A subclass of one of Keras's own that adds nothing for batches is as that is."""
    assert callbacks._wants_batches(made(), keras.callbacks, callbacks.BATCH_METHODS) == wants
