# SPDX-License-Identifier: Apache-2.0
"""A `tf_keras.utils.Sequence`, as the PyDataset that Keras 3 has made of it."""

from typing import Any

import keras


class SequenceAsPyDataset(keras.utils.PyDataset):  # type: ignore[misc]
    """A Sequence with the workers that tf_keras's `fit` is given for it, told of epochs' ends as tf_keras tells it."""

    def __init__(self, sequence: Any, *, workers: int, use_multiprocessing: bool, max_queue_size: int) -> None:
        super().__init__(workers, use_multiprocessing, max_queue_size)
        self._sequence = sequence
        self._within = False

    @property
    def changes_with_epochs(self) -> bool:
        """Whether it may give other examples once it is told of an epoch's end: tf_keras's own method does nothing."""
        method = getattr(type(self._sequence), "on_epoch_end", None)
        return method is not None and not method.__module__.startswith("tf_keras.")

    def __len__(self) -> int:
        return len(self._sequence)

    def __getitem__(self, index: int) -> Any:
        return self._sequence[index]

    def on_epoch_begin(self) -> None:
        """Note that an epoch has begun, of which a Sequence is not told."""
        self._within = True

    def on_epoch_end(self) -> None:
        """Tell the Sequence; not before the first epoch and each validation, as Keras 3 tells a PyDataset."""
        if self._within and hasattr(self._sequence, "on_epoch_end"):
            self._sequence.on_epoch_end()
        self._within = False


def is_sequence(x: Any) -> bool:
    """Whether `x` is a Sequence of tf_keras, which is not imported for that."""
    return any(base.__module__.startswith("tf_keras.") and base.__name__ == "Sequence" for base in type(x).__mro__)
