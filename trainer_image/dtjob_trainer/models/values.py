# SPDX-License-Identifier: Apache-2.0
"""Values of variables by name, read and assigned in pieces as they are needed: memory may have no room for a second
model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.strategies.parameter_servers import side_by_side
from dtjob_trainer.strategies.sharded_variables import rows_of, shards_of

Array = npt.NDArray[Any]
Form = tuple[tuple[int, ...], str]
"""Shape, and the name of the type."""
PIECE_BYTES = 2**26
"""Most bytes of variables that are read or written at once. A larger variable is in a checkpoint in such pieces:
TensorFlow reads a whole piece to give a part of it."""
_ALIGNED_ROWS = 64
"""So many rows, or twice as many, end at a multiple of 64 bytes."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Rows:
    """Rows of a variable, or all of one without rows."""

    shape: tuple[int, ...]
    """Of the whole variable."""
    first: int
    count: int
    tensor: Any = None
    """Their values, where the variable is."""

    @property
    def slice(self) -> str:
        """The rows, as `tf.raw_ops.SaveV2` and `RestoreV2` take them."""
        if not self.shape or self.count == self.shape[0]:
            return ""
        sizes, others = " ".join(map(str, self.shape)), ":-" * (len(self.shape) - 1)
        return f"{sizes} {self.first},{self.count}{others}"

    def bytes(self, dtype: Any) -> int:
        """How many bytes they have."""
        return bytes_of(form_of((self.count, *self.shape[1:]) if self.shape else (), dtype))

    def pieces(self, dtype: Any) -> "Iterator[Rows]":
        """These rows, in pieces of at most PIECE_BYTES, or of one row. Each has its part of the tensor."""
        if not (self.shape and self.count):
            yield self
            return
        row = bytes_of(form_of(self.shape[1:], dtype))
        most = max(1, PIECE_BYTES // max(row, 1))
        most -= most % _ALIGNED_ROWS if most > _ALIGNED_ROWS else 0
        for first in range(0, self.count, most):
            count = min(most, self.count - first)
            part = self.tensor
            if part is not None and count < self.count:
                with tf.device(part.device):  # of a flat tensor that begins there TensorFlow copies nothing
                    width = int(np.prod(self.shape[1:]))
                    flat = tf.reshape(part, [-1])[first * width : (first + count) * width]
                    part = tf.reshape(flat, (count, *self.shape[1:]))
            yield Rows(self.shape, self.first + first, count, part)


class Values(ABC):
    """Arrays by name."""

    forms: Mapping[str, Form]
    """Of all that there are."""
    servers: Sequence[str] = ()
    """The devices of parameter servers that can read it themselves."""

    @abstractmethod
    def read(self, names: Sequence[str], slices: Sequence[str] | None = None) -> list[Any]:
        """The tensors of these names, on the device of the present `tf.device`.

        - slices: of each tensor the part that is wanted, as `tf.raw_ops.RestoreV2` takes it; "" for all of it.
        """

    def array(self, name: str) -> Array:
        """One of them as an array."""
        (found,) = self.read([name])
        return np.asarray(found)


class Held(Values):
    """Arrays in memory."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays
        self.forms = {name: form_of(array.shape, array.dtype) for name, array in arrays.items()}

    def read(self, names: Sequence[str], slices: Sequence[str] | None = None) -> list[Any]:
        """The arrays themselves. Nothing asks for parts of what is in memory."""
        assert slices is None
        return [self._arrays[name] for name in names]


def form_of(shape: Any, dtype: Any) -> Form:
    """The form of a variable or array."""
    return tuple(shape), tf.as_dtype(dtype).name


def bytes_of(form: Form) -> int:
    """How many bytes one of this form has."""
    return int(np.prod(form[0], dtype=np.int64)) * int(tf.as_dtype(form[1]).size)


def is_large(form: Form) -> bool:
    """Whether a variable of this form has rows, and more bytes than pass through the chief at once."""
    return bool(form[0]) and bytes_of(form) > PIECE_BYTES


def in_groups(items: Iterable[Item], size: Callable[[Item], int], most: int | None = None) -> Iterator[list[Item]]:
    """`items`, in their order, in groups of at most `most` bytes (None: PIECE_BYTES), or of one. `size`: an item's."""
    group: list[Item] = []
    left = most = PIECE_BYTES if most is None else most
    for item in items:
        if group and size(item) > left:
            yield group
            group, left = [], most
        group.append(item)
        left -= size(item)
    if group:
        yield group


VariableShard = tuple[str, Rows, Any]
"""A variable shard: the name of the variable, its rows in the whole, and the `tf.Variable` of the shard."""


def is_remote(variable: Any) -> bool:
    """Whether a `tf.Variable`, also one in shards, is on parameter servers."""
    return any("/job:ps" in (shard.device or "") for _, shard in shards_of(variable))


def rows_there(variables: Mapping[str, Any]) -> dict[str, list[Rows]]:
    """The values of the shards of variables, on the devices of the shards: TensorFlow copies a table to read it.

    All parameter servers do so at the same time.
    """
    found: dict[str, list[Rows]] = {name: [] for name in variables}

    def read(shards: Sequence[VariableShard]) -> None:
        for name, rows, shard in shards:
            found[name].append(replace(rows, tensor=value_there(shard)))

    side_by_side(partial(read, shards) for shards in _by_device(variables).values())
    return found


def value_there(shard: Any) -> Any:
    """The value of a `tf.Variable`, on its own device. TensorFlow puts what it reads on the reader's otherwise."""
    with tf.device(shard.device):
        return shard.read_value()


def assign(values: Values, variables: Mapping[str, Any]) -> None:
    """Give variables, by the names of their values, their values. At most PIECE_BYTES of these are in memory at once.

    Each parameter server reads what it holds if `values` can be read there; otherwise this process reads all.
    """
    places = _by_device(variables)
    if values.servers:
        side_by_side(partial(_assign, values, device, shards) for device, shards in places.items())
    else:
        _assign(values, None, [shard for shards in places.values() for shard in shards])


def _by_device(variables: Mapping[str, Any]) -> dict[str, list[VariableShard]]:
    """The shards of variables by the device on which they are."""
    places: dict[str, list[VariableShard]] = {}
    for name, variable in variables.items():
        for first, shard in shards_of(variable):
            rows = Rows(tuple(variable.shape), first, rows_of(shard))
            places.setdefault(shard.device, []).append((name, rows, shard))
    return places


def _assign(values: Values, device: str | None, shards: Sequence[VariableShard]) -> None:
    """Read the rows of shards on `device` (None: here), and assign them."""
    pieces = ((name, whole, rows, shard) for name, whole, shard in shards for rows in whole.pieces(shard.dtype))
    for group in in_groups(pieces, lambda piece: piece[2].bytes(piece[3].dtype)):
        with tf.device(device):
            found = values.read([name for name, *_ in group], [rows.slice for _, _, rows, _ in group])
        for (_, whole, rows, shard), value in zip(group, found, strict=True):
            if rows.count == whole.count:
                shard.assign(value)
                continue
            begin = rows.first - whole.first
            with tf.device(shard.device):  # an assignment to a slice would copy the whole variable for each piece
                tf.raw_ops.ResourceScatterUpdate(
                    resource=shard.handle, indices=tf.range(begin, begin + rows.count), updates=value
                )
