# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.arrays: arrays as tensors, copied once at most."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.data import arrays, sources

ROWS = np.arange(arrays.LARGE, dtype=np.float64).reshape(-1, 256)
"""Large in each type."""


def begins_at(tensor: Any) -> int:
    return int(np.asarray(memoryview(tensor)).ctypes.data)


@pytest.mark.parametrize(
    "array",
    [
        ROWS,
        ROWS.astype("float32"),
        (ROWS % 100).astype("float16"),
        ROWS.astype("int64"),
        ROWS.astype("uint8"),
        ROWS > 5,
        ROWS.astype("complex64"),
        np.asfortranarray(ROWS),
        ROWS[::2],
        ROWS[:, 3:200],
        ROWS.astype(">f4"),
        ROWS[:3],
        np.array(["a", "b"]),
        ROWS.reshape(-1, 4, 4, 16),
    ],
    ids=lambda array: f"{array.dtype}-{array.shape}",
)
def test_a_tensor_has_the_bits_of_its_array(array: Any) -> None:
    tensor = arrays.host_tensor(array)
    plain = array.astype(array.dtype.newbyteorder("="))
    assert tensor.dtype == tf.constant(plain[:1]).dtype
    assert tensor.shape == array.shape
    assert tensor.numpy().tolist() == tf.constant(plain).numpy().tolist()
    assert "CPU:0" in tensor.device


def test_a_later_change_of_an_array_does_not_change_its_tensor() -> None:
    array = ROWS.copy()
    view = array[:]
    view.flags.writeable = False
    for given in (array, view):
        tensor = arrays.host_tensor(given)
        before = tensor.numpy().copy()
        array += 1.0
        assert (tensor.numpy() == before).all()


def test_an_array_that_can_be_made_writeable_again_is_copied() -> None:
    memory = np.empty(ROWS.nbytes + arrays.ALIGNED, np.uint8)
    array = memory[-memory.ctypes.data % arrays.ALIGNED :][: ROWS.nbytes].view(np.float64)
    memory.flags.writeable = array.flags.writeable = False
    assert begins_at(arrays.host_tensor(array)) != array.ctypes.data


@pytest.mark.parametrize(("mode", "shared"), [("r", True), ("c", False), ("r+", False)])
def test_a_file_that_is_mapped_to_be_read_is_not_copied(tmp_path: Path, mode: Any, shared: bool) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode=mode)
    for array in (mapped, np.asarray(mapped)):
        tensor = arrays.host_tensor(array)
        assert (begins_at(tensor) == mapped.ctypes.data) == shared
        assert tensor.numpy().tolist() == ROWS.tolist()


def test_arrays_of_kerass_type_are_taken_as_they_are() -> None:
    floats, numbers = ROWS.astype("float32"), ROWS.astype("int32")
    x, y, _ = sources.as_arrays(floats, numbers, None, "x")
    assert x is floats
    assert y is numbers
