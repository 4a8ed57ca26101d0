# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.placement.joined: what replicas exchange."""

from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.placement import joined

REDUCED = (tf.float32, tf.float64)
"""What TensorFlow reduces both between GPUs of several tasks (of int32 its base_collective_executor.cc says that it
does not) and on TPUs (whose CrossReplicaSum takes no int64)."""


@pytest.mark.parametrize(
    "dtype",
    [
        *(tf.bool, tf.uint8, tf.int8, tf.int16, tf.uint16, tf.int32, tf.uint32),
        *(tf.float16, tf.bfloat16, tf.float32, tf.float64),
    ],
)
def test_rows_of_any_type_are_exchanged_as_gpus_reduce_them(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    exchanged = []

    class Replica:
        def all_reduce(self, _: Any, values: Any) -> Any:
            exchanged.extend(value.dtype for value in values)
            return values

    monkeypatch.setattr(tf.distribute, "get_replica_context", Replica)
    most = dtype.max if dtype.is_integer else 1
    summed = joined.sums([tf.cast([0, most], dtype)])[0]
    assert (summed.dtype, summed.numpy().tolist()) == (dtype, [0, most])
    assert exchanged[0] in REDUCED
