# SPDX-License-Identifier: Apache-2.0
"""Arrays as tensors in the host's memory, with one copy at most.

TensorFlow copies a NumPy array twice: once so that nobody changes the tensor, and once more to begin where a cache line
does. An array that nobody can change and that begins there is not copied at all, as one of `np.load(…, mmap_mode="r")`.
Its file is then in memory once for all tasks of a machine.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.frameworks import tensorflow

ALIGNED = 64
"""Where TensorFlow lets a tensor begin: at a multiple of so many bytes."""
LARGE = 2**20
"""Bytes from which on an array is worth it."""


def of(array: Any) -> Any:
    """The tensor of `array`, which may be None. What the program writes to `array` later is not seen there."""
    if array is None:
        return None
    with tf.device("CPU:0"):
        if array.nbytes < LARGE or array.dtype.kind not in "biufc":
            return tf.constant(array)
        shared = array if _can_be_shared(array) else _aligned_copy(array)
        return tensorflow.tensor_of(shared)


def _can_be_shared(array: Any) -> bool:
    """Whether nobody can write to `array`, and TensorFlow takes it as it is."""
    owner = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    contiguous = array.flags.c_contiguous and array.dtype.isnative
    return bool(contiguous and array.ctypes.data % ALIGNED == 0 and _is_read_only(owner))


def _is_read_only(owner: Any) -> bool:
    """Whether nobody can write through `owner`, of whose memory an array is a view. An array of its own may be made
    writeable again."""
    try:
        return owner is not None and memoryview(owner).readonly
    except TypeError:  # it does not tell
        return False


def _aligned_copy(array: Any) -> Any:
    """A copy of `array` that TensorFlow takes as it is."""
    memory = np.empty(array.nbytes + ALIGNED, np.uint8)
    begin = -memory.ctypes.data % ALIGNED
    kind = array.dtype.newbyteorder("=")
    copy = memory[begin : begin + array.nbytes].view(kind).reshape(array.shape)
    copy[...] = array
    return copy
