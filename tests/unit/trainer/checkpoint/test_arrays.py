"""dtjob_trainer.checkpoint.arrays: arrays come back with their bits, and large ones are no JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import arrays
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.checkpoint.writer import write

LARGE = arrays.INLINE_BYTES + 1


def through_a_checkpoint(directory: Path, state: Any) -> tuple[Any, bytes]:
    """What comes back of `state`, and its JSON."""
    text, large = arrays.pack(state)
    write(str(directory), 5, {"v": tf.constant(1.0), **large}, text, max_to_keep=3)
    stored = Stored(str(directory), 5)
    return arrays.unpack(text, lambda name, _: np.array(stored.array(name))), text


@pytest.mark.parametrize(
    "array",
    [
        np.float32(0.1),
        np.arange(3, dtype=">i2"),
        np.zeros((0, 4)),
        np.linspace(0, 1, LARGE),
        np.linspace(0, 1, LARGE).astype(tf.bfloat16.as_numpy_dtype).reshape(-1, 5),
        np.arange(LARGE * 2).reshape(2, -1).T[::3],
        np.arange(LARGE) % 3 == 0,
        np.array(["é", "text"] * LARGE),
        np.arange(LARGE).astype("datetime64[s]"),
        np.frombuffer(bytes(LARGE), np.uint8),
    ],
    ids=lambda array: f"{array.dtype.name} {array.shape}",
)
def test_an_array_comes_back_with_its_bits_and_can_be_changed(tmp_path: Path, array: Any) -> None:
    back, text = through_a_checkpoint(tmp_path, {"nested": [1, {"array": array}]})
    found = back["nested"][1]["array"]
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert found.flags.writeable
    assert len(text) < 3 * arrays.INLINE_BYTES, "the JSON has no large array"


def address_of(tensor: Any) -> int:
    return int(np.asarray(tensor).ctypes.data)


@pytest.mark.parametrize("offset", range(0, 64, 8))
def test_the_memory_of_a_tensor_is_aligned(offset: int) -> None:
    """Or TensorFlow aborts the process, as where it takes a slice of the tensor."""
    array = np.arange(LARGE + 64, dtype=np.uint8)[offset:]
    (tensor,) = arrays.as_tensors({"array/0000": array}).values()
    assert address_of(tensor) % arrays.ALIGNMENT == 0
    assert np.array_equal(tensor[1:], array[1:])


@pytest.mark.parametrize("array", [np.arange(LARGE, dtype=np.float32), np.zeros((3, LARGE), ">i2").T])
def test_a_tensor_shares_the_memory_of_a_copy(array: Any) -> None:
    """What was copied on the training thread is not copied once more."""
    copy = arrays.copy_of(array)
    assert (copy.dtype, copy.tolist()) == (array.dtype, array.tolist())
    _, large = arrays.pack(copy)
    (tensor,) = arrays.as_tensors(large).values()
    assert address_of(tensor) == copy.ctypes.data


def test_a_copy_of_nothing_is_nothing() -> None:
    assert arrays.copy_of(np.zeros((0, 4))).shape == (0, 4)


def test_what_is_neither_json_nor_an_array_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot hold a set"):
        arrays.pack({"state": {1, 2}})
