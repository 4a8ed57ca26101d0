# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.packing: arrays come back with their bits, and large ones are no JSON."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import packing, writer
from dtjob_trainer.checkpoint.stored import Stored

LARGE = packing.INLINE_BYTES + 1


def through_a_checkpoint(directory: Path, state: Any) -> tuple[Any, bytes]:
    """What comes back of `state`, and its JSON."""
    text, large = packing.pack(state)
    writer.write(str(directory), 5, {"v": tf.constant(1.0), **large}, text, max_to_keep=3)
    stored = Stored(str(directory), 5)
    return packing.unpack(text, lambda name, _: np.array(stored.array(name))), text


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
    assert len(text) < 3 * packing.INLINE_BYTES, "the JSON has no large array"


@pytest.mark.parametrize("offset", [0, 1, 16])
def test_a_tensor_is_made_in_chunks_and_can_be_cut(monkeypatch: pytest.MonkeyPatch, offset: int) -> None:
    """TensorFlow aborts the process where it cuts a tensor whose memory is NumPy's and not aligned."""
    monkeypatch.setattr(packing, "CHUNK_BYTES", 100)
    array = np.arange(LARGE, dtype=np.uint8)[offset:]
    tensors = packing.as_tensors({"array/0000": array, "v": 5})
    assert tensors["v"] == 5
    assert np.array_equal(tensors["array/0000"], array)
    assert np.array_equal(tensors["array/0000"][1:], array[1:])
    array[:] = 0
    assert np.asarray(tensors["array/0000"]).any(), "the memory is TensorFlow's"


def test_a_value_that_is_neither_json_nor_an_array_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot hold a set"):
        packing.pack({"state": {1, 2}})
