# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.collective: what is exchanged, as one task alone can see it."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from dtjob_trainer.strategies import collective
from dtjob_trainer.strategies.collective import REDUCED, Group


class TwoTasks(Group):
    """This one's part in what two exchange: the other has zeros."""

    def __init__(self) -> None:
        super().__init__(tf.distribute.get_strategy(), None)
        self.tasks = self.replicas = 2
        self.local = 1
        self.exchanged: list[Any] = []

    def _sum_tasks(self, vector: Any, key: int | None = None) -> Any:
        self.exchanged.append(vector.dtype.as_numpy_dtype)
        return vector


def test_the_tasks_vectors_become_rows() -> None:
    assert TwoTasks().of_each(np.array([1, 2])).tolist() == [[1, 2], [0, 0]]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, np.float16])
def test_a_type_that_gpus_do_not_sum_is_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match=f"sums {np.dtype(dtype)}; use one of float32, float64, int64"):
        Group(tf.distribute.get_strategy(), None).sum(np.zeros(3, dtype))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000])
def test_rows_are_exchanged_bit_for_bit_in_words_that_gpus_sum(size: int) -> None:
    group, random = TwoTasks(), np.random.default_rng(size)
    data: npt.NDArray[np.uint8] = random.integers(0, 256, size, np.uint8)
    rows = group.gather(data[None])
    assert rows.tolist() == [data.tolist(), [0] * size]
    assert set(group.exchanged) <= set(REDUCED)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000, 1024, 1025])
def test_a_broadcast_gives_every_byte_in_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collective, "CHUNK_BYTES", 512)
    group, sent = TwoTasks(), list[Any]()
    monkeypatch.setattr(group, "_send", sent.append)
    monkeypatch.setattr(group, "_receive", lambda count: sent.pop(0).reshape(count))
    data: npt.NDArray[np.uint8] = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert np.array_equal(group.broadcast(data, size), data)
    assert np.array_equal(group.broadcast(None, size), data)
    assert not sent
