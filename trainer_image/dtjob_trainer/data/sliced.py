# SPDX-License-Identifier: Apache-2.0
"""Ragged and sparse tensors as arrays in memory: any rows of them, as Keras's own slicing takes them out."""

from typing import Any

import tensorflow as tf

from dtjob_trainer.frameworks import datasets


class Sliced:
    """One ragged or sparse tensor, or a sparse matrix of SciPy, with floats in Keras's default precision."""

    def __init__(self, tensor: Any) -> None:
        if datasets.is_scipy_sparse(tensor):
            tensor = datasets.from_scipy(tensor)
        self._count = int(tensor.shape[0])
        self._rows = datasets.sliceable(tensor)
        first = self.rows([0]) if len(self) else tensor
        self.spec = tf.type_spec_from_value(first)
        """Spec of some rows."""

    def __len__(self) -> int:
        return self._count

    def rows(self, numbers: Any) -> Any:
        """The tensor of the rows of these numbers, in their order."""
        return self._rows[numbers]


def can_slice(value: Any) -> bool:
    """Whether `value` is such a tensor."""
    return isinstance(value, tf.RaggedTensor | tf.SparseTensor) or datasets.is_scipy_sparse(value)
