# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.models.values: how much is read at once, and how variables get their values piece by piece."""

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.models import values
from dtjob_trainer.models.values import Values, bytes_of, form_of, in_groups

TABLE = np.arange(30, dtype=np.float32).reshape(10, 3)
ROW = 12


class Parts(Values):
    """Gives parts of a table and a count, and notes how many bytes were read at once."""

    def __init__(self, servers: Sequence[str]) -> None:
        self._all: dict[str, Any] = {"table": TABLE, "count": np.int64(7)}
        self.forms = {name: form_of(each.shape, each.dtype) for name, each in self._all.items()}
        self.servers = servers
        self.read_at_once: list[int] = []

    def read(self, names: Sequence[str], slices: Sequence[str] | None = None) -> list[Any]:
        found = []
        for name, place in zip(names, slices or (), strict=True):
            first, count = map(int, place.split()[2].split(":")[0].split(",")) if place else (0, 10)
            found.append(tf.constant(self._all[name][first : first + count] if name == "table" else self._all[name]))
        self.read_at_once.append(sum(each.numpy().nbytes for each in found))
        return found


@pytest.mark.parametrize("servers", [(), ("CPU:0",)])
@pytest.mark.parametrize("piece", [1000, 4 * ROW, 1])
def test_variables_get_all_their_rows_with_few_of_them_in_memory_at_once(
    monkeypatch: pytest.MonkeyPatch, piece: int, servers: tuple[str, ...]
) -> None:
    monkeypatch.setattr(values, "PIECE_BYTES", piece)
    stored, table, count = Parts(servers), tf.Variable(tf.zeros((10, 3))), tf.Variable(0, dtype=tf.int64)
    values.assign(stored, {"table": table, "count": count})
    assert np.array_equal(table.numpy(), TABLE)
    assert count.numpy() == 7
    assert max(stored.read_at_once) <= max(piece, ROW)


def test_parameter_servers_copy_what_they_hold_at_the_same_time() -> None:
    barrier = threading.Barrier(2)

    def shard(value: float, task: int) -> Any:
        def read() -> Any:
            barrier.wait(10)  # for the other server
            return value

        device = f"/job:ps/replica:0/task:{task}/device:CPU:0"
        return SimpleNamespace(shape=tf.TensorShape([2]), device=device, read_value=read)

    found = values.rows_there({"a": shard(1.0, 0), "b": shard(2.0, 1)})
    assert {name: [(rows.first, rows.count, rows.tensor) for rows in parts] for name, parts in found.items()} == {
        "a": [(0, 2, 1.0)],
        "b": [(0, 2, 2.0)],
    }


def test_variables_are_read_in_groups_of_so_many_bytes_and_larger_ones_alone() -> None:
    kinds = {name: ((size,), "float32") for name, size in {"a": 1, "b": 2, "c": 5, "d": 1, "e": 1}.items()}

    def size(name: str) -> int:
        return bytes_of(kinds[name])

    assert list(in_groups(kinds, size, 12)) == [["a", "b"], ["c"], ["d", "e"]]
    assert list(in_groups([], size, 12)) == []
