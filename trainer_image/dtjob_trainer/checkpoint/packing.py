# SPDX-License-Identifier: Apache-2.0
"""Arrays in what a checkpoint keeps beside variables: each is a tensor of the checkpoint, and the JSON has its name."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.models.values import Array

Bytes = npt.NDArray[np.uint8]
INLINE_BYTES = 1024
"""Up to this size, the JSON has an array itself: a history may have thousands of numbers of NumPy's types."""
CHUNK_BYTES = 2**20
"""How much of an array is copied while the other threads wait."""
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
