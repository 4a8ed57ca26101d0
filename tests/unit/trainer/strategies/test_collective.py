"""dtjob_trainer.strategies.collective: what is exchanged, as one task alone can see it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf

from dtjob_trainer.strategies.collective import REDUCED, Group


class TwoTasks(Group):
    """This one's part in what two exchange: the other has zeros."""

    def __init__(self) -> None:
        super().__init__(tf.distribute.get_strategy(), None)
        self.tasks = self.replicas = 2
        self.local = 1
        self.exchanged: list[Any] = []

    def _sum_replicas(self, vector: Any) -> Any:
        self.exchanged.append(vector.dtype.as_numpy_dtype)
        return vector


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.bool_, np.float16])
def test_what_gpus_do_not_sum_is_asked_of_no_strategy(dtype: Any) -> None:
    with pytest.raises(TypeError, match=f"sums {np.dtype(dtype)}; use one of float32, float64, int64"):
        Group(tf.distribute.get_strategy(), None).sum(np.zeros(3, dtype))


@pytest.mark.parametrize("size", [1, 7, 8, 9, 1000])
def test_bytes_are_exchanged_bit_for_bit_in_words_that_gpus_sum(size: int) -> None:
    group, random = TwoTasks(), np.random.default_rng(size)
    data: npt.NDArray[np.uint8] = random.integers(0, 256, size, np.uint8)
    assert group.broadcast(data.tobytes(), size) == data.tobytes()
    rows = group.gather(data[None])
    assert rows.tolist() == [data.tolist(), [0] * size]
    assert set(group.exchanged) <= set(REDUCED)
