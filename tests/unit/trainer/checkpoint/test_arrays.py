# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.arrays: arrays come back with their bits, and large ones are no JSON."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from dtjob_trainer.checkpoint import arrays, writer
from dtjob_trainer.checkpoint.stored import Stored

LARGE = arrays.INLINE_BYTES + 1


def through_a_checkpoint(directory: Path, state: Any) -> tuple[Any, bytes]:
    """What comes back of `state`, and its JSON."""
    text, large = arrays.pack(state)
    writer.write(str(directory), 5, {"v": tf.constant(1.0), **large}, text, max_to_keep=3)
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


@pytest.mark.parametrize("offset", [0, 1, 16])
def test_a_tensor_is_made_in_chunks_and_can_be_cut(monkeypatch: pytest.MonkeyPatch, offset: int) -> None:
    """TensorFlow aborts the process where it cuts a tensor whose memory is NumPy's and not aligned."""
    monkeypatch.setattr(arrays, "CHUNK_BYTES", 100)
    array = np.arange(LARGE, dtype=np.uint8)[offset:]
    tensors = arrays.as_tensors({"array/0000": array, "v": 5})
    assert tensors["v"] == 5
    assert np.array_equal(tensors["array/0000"], array)
    assert np.array_equal(tensors["array/0000"][1:], array[1:])
    array[:] = 0
    assert np.asarray(tensors["array/0000"]).any(), "the memory is TensorFlow's"


def test_a_value_that_is_neither_json_nor_an_array_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot hold a set"):
        arrays.pack({"state": {1, 2}})


def saved(directory: Path, unchanged: arrays.Unchanged, step: int, state: dict[str, Any]) -> tuple[int, ...]:
    """Save `state`; the inodes of the checkpoint's data files. It must read back as it was."""
    text, large = arrays.pack(state)
    tensors = {"v": tf.constant(float(step)), **large}
    writer.write(str(directory), step, tensors, text, 2, unchanged=unchanged)
    stored = Stored(str(directory), step)
    stored.verify()
    back = arrays.unpack(json.dumps(stored.state).encode(), lambda name, _: np.array(stored.array(name)))
    assert all(np.array_equal(back[name], array) for name, array in state.items())
    assert stored.array("v") == step
    return tuple(sorted(file.stat().st_ino for file in directory.glob(f"ckpt-{step}.data-*")))


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch) -> np.ndarray[Any, Any]:
    monkeypatch.setattr(arrays, "LEAST_BYTES", 1000)
    return np.random.default_rng(1).random(LARGE)


def test_arrays_that_did_not_change_are_written_once(tmp_path: Path, weights: Any) -> None:
    unchanged = arrays.Unchanged()
    first = saved(tmp_path, unchanged, 1, {"best": weights})
    second = saved(tmp_path, unchanged, 2, {"best": weights.copy()})
    assert len(first) == len(second) == 2
    assert len({*first, *second}) == 3, "they share the file of the arrays"
    third = saved(tmp_path, unchanged, 3, {"best": weights})
    assert not list(tmp_path.glob("ckpt-1.*")), "the oldest is removed, and the others are whole"
    assert len({*second, *third}) == 3
    Stored(str(tmp_path), 2).verify()


def test_arrays_that_changed_in_their_place_are_written_again(tmp_path: Path, weights: Any) -> None:
    unchanged = arrays.Unchanged()
    first = saved(tmp_path, unchanged, 1, {"best": weights})
    weights[-1] += 1
    second = saved(tmp_path, unchanged, 2, {"best": weights})
    assert not {*first} & {*second}


def test_arrays_of_a_checkpoint_that_was_removed_are_written_again(tmp_path: Path, weights: Any) -> None:
    unchanged = arrays.Unchanged()
    saved(tmp_path, unchanged, 1, {"best": weights})
    for file in tmp_path.glob("ckpt-1.*"):
        file.unlink()
    assert len(saved(tmp_path, unchanged, 2, {"best": weights})) == 2


def test_without_hard_links_arrays_are_written_each_time(
    tmp_path: Path, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: Any) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", link)
    unchanged = arrays.Unchanged()
    inodes = [saved(tmp_path, unchanged, step, {"best": weights}) for step in (1, 2)]
    assert len({inode for each in inodes for inode in each}) == 4


def test_a_save_that_failed_is_no_source_of_arrays(
    tmp_path: Path, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise OSError("storage is away")

    unchanged = arrays.Unchanged()
    saved(tmp_path, unchanged, 1, {"best": weights})
    with monkeypatch.context() as patch:
        patch.setattr(writer, "name_finally", away)
        with pytest.raises(OSError, match="storage is away"):
            saved(tmp_path, unchanged, 2, {"best": weights + 1})
    saved(tmp_path, unchanged, 3, {"best": weights + 1})


def test_few_bytes_of_arrays_are_in_the_one_file_of_all_else(tmp_path: Path) -> None:
    assert len(saved(tmp_path, arrays.Unchanged(), 1, {"best": np.ones(LARGE)})) == 1
