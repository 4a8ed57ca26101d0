# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.initial_values: what tells initial values apart."""

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.models.initial_values import digests_of


def test_equal_values_have_equal_digests_however_they_lie_in_memory() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert digests_of(values) == digests_of(np.asfortranarray(values))


@pytest.mark.parametrize(
    ("other", "same_kind"),
    [
        (np.array([1.0, 3.0], np.float32), True),
        (np.array([2.0, 1.0], np.float32), True),  # the same ones in another order
        (np.array([[1.0, 2.0]], np.float32), False),
        (np.array([1.0, 2.0], np.float64), False),
    ],
)
def test_other_values_shapes_and_types_have_others(other: np.ndarray, same_kind: bool) -> None:
    kind, value = digests_of(np.array([1.0, 2.0], np.float32))
    assert (digests_of(other)[0] == kind) == same_kind
    assert (digests_of(other)[1] == value) == (not same_kind and other.dtype == np.float32)


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.bool, tf.int8, tf.complex64])
def test_values_of_any_type_and_none_at_all_have_them(dtype: tf.DType) -> None:
    for shape in ((), (0,), (2, 2)):
        assert digests_of(tf.zeros(shape, dtype).numpy())
