# SPDX-License-Identifier: Apache-2.0
"""Arrays in what a checkpoint keeps beside variables: each is a tensor of the checkpoint, and the JSON has its name."""

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.checkpoint import parts
from dtjob_trainer.checkpoint.directory import DATA_SUFFIX, INDEX
from dtjob_trainer.models.values import Array

Bytes = npt.NDArray[np.uint8]
INLINE_BYTES = 1024
"""Up to this size, the JSON has an array itself: a history may have thousands of numbers of NumPy's types."""
CHUNK_BYTES = 2**20
"""How much of an array is copied while the other threads wait."""
LEAST_BYTES = 2**20
"""Smaller arrays, all together, are in the one file of all else."""
PREFIX = "array/"
"""How the names of these tensors begin. They hold bytes, because NumPy has types that TensorFlow lacks."""


def pack(state: Any) -> tuple[bytes, dict[str, Bytes]]:
    """`state` as JSON, and the bytes of its larger arrays by the names that the JSON has for them.

    The bytes are the arrays' own memory, unless an array has its elements in another order.
    """
    arrays: dict[str, Bytes] = {}

    def in_json(value: Any) -> dict[str, Any]:
        if is_dataclass(value):
            return vars(value)
        if not isinstance(value, np.ndarray | np.generic):
            raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")
        array = np.asarray(value)
        # of types that are not NumPy's own, as bfloat16, `str` only tells the size
        dtype = array.dtype.name if array.dtype.kind == "V" else array.dtype.str
        kind = {"dtype": dtype, "shape": list(array.shape)}
        if array.nbytes <= INLINE_BYTES:
            return {"__array__": base64.b64encode(array.tobytes()).decode(), **kind}
        name = f"{PREFIX}{len(arrays):04}"
        arrays[name] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return {"__tensor__": name, "bytes": array.nbytes, **kind}

    return json.dumps(state, default=in_json).encode(), arrays


def unpack(text: bytes, read: Callable[[str, int], Bytes]) -> Any:
    """What `pack` was given (tuples come back as lists).

    - read: gives the bytes of a tensor by name and size, as an array that can be written to. It is called in the order
      of the names, which is the same in all tasks.
    """

    def of_json(part: Mapping[str, Any]) -> Any:
        if "__array__" in part:
            data = np.frombuffer(base64.b64decode(part["__array__"]), np.uint8).copy()
        elif "__tensor__" in part:
            data = read(part["__tensor__"], part["bytes"])
        else:
            return part
        return data.view(_dtype(part["dtype"])).reshape(part["shape"])

    return json.loads(text, object_hook=of_json)


def as_tensors(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with a tensor for each array."""
    return {name: _tensor_of(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}


class Unchanged:
    """The arrays of the last checkpoint that was written.

    They have a data file of their own. If the next checkpoint has the same arrays, it gets a hard link to that file.
    Each checkpoint stays whole by itself, because removing another one removes a name alone. Where a file system has no
    hard links, as in an object store, all is written each time.
    """

    def __init__(self) -> None:
        self._digest = b""
        """Of the arrays; empty where nothing is known."""
        self._index = b""
        """The index of a checkpoint of these arrays alone."""
        self._data: Path | None = None
        """Their data file."""
        self._inode: int | None = None

    def place(self, prefix: str, arrays: Mapping[str, Bytes]) -> None:
        """Make a checkpoint `prefix` of `arrays` alone. Call `saved` when its data file has its last name."""
        digest = _digest_of(arrays)
        data = Path(prefix + DATA_SUFFIX)
        if digest != self._digest or not self._linked(data, prefix):
            self._digest, self._data = b"", None  # an error from here on leaves nothing to go by
            parts.save(prefix, [(name, "", tensor) for name, tensor in as_tensors(arrays).items()])
            self._index = Path(prefix + INDEX).read_bytes()
            self._digest = digest
        self._inode = data.stat().st_ino

    def saved(self, prefix: str) -> None:
        """Find the placed file among those of checkpoint `prefix`, which is whole."""
        path = Path(prefix)
        files = path.parent.glob(f"{path.name}.data-*")
        self._data = next((file for file in files if file.stat().st_ino == self._inode), None)

    def _linked(self, data: Path, prefix: str) -> bool:
        """Give the earlier data file this name; whether that went well."""
        if self._data is None:
            return False
        data.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(self._data, data)
        except OSError:  # somebody has removed it, or the file system has no links
            return False
        Path(prefix + INDEX).write_bytes(self._index)
        return True


def apart(tensors: Mapping[str, Any], directory: str) -> dict[str, Bytes]:
    """Those of `tensors` that are arrays, if a file of their own pays; else none."""
    arrays = {name: value for name, value in tensors.items() if name.startswith(PREFIX)}
    pays = sum(array.nbytes for array in arrays.values()) >= LEAST_BYTES and "://" not in directory
    return arrays if pays else {}


def _digest_of(arrays: Mapping[str, Bytes]) -> bytes:
    """Names and bytes of `arrays`, as one number. Other threads run meanwhile."""
    found = hashlib.blake2b(digest_size=32)
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.nbytes} ".encode())
        found.update(array.data)
    return found.digest()


def _tensor_of(array: Array) -> Any:
    """A copy in TensorFlow's memory. While TensorFlow copies from NumPy, Python's other threads wait."""
    rows = max(1, CHUNK_BYTES * len(array) // max(1, array.nbytes))
    chunks = []
    with tf.device("CPU:0"):
        for first in range(0, len(array), rows):
            chunks.append(tf.convert_to_tensor(array[first : first + rows]))
            time.sleep(0)
        return chunks[0] if len(chunks) == 1 else tf.concat(chunks, 0)


def _dtype(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        return tf.as_dtype(name).as_numpy_dtype
