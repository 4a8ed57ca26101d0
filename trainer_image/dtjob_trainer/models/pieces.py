"""Variables that are read and assigned in pieces, so that memory holds little beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import tensorflow as tf

from dtjob_trainer.models.values import Rows, Values, in_groups
from dtjob_trainer.strategies.servers import side_by_side
from dtjob_trainer.strategies.sharded_variables import rows_of, shards_of


def is_remote(variable: Any) -> bool:
    """Whether a `tf.Variable`, also one in shards, is on parameter servers."""
    return any("/job:ps" in (shard.device or "") for _, shard in shards_of(variable))


def rows_there(variable: Any) -> list[Rows]:
    """The value of each shard of a variable, on the device of the shard."""
    shape = tuple(variable.shape)
    return [Rows(shape, first, rows_of(shard), value_there(shard)) for first, shard in shards_of(variable)]


def value_there(shard: Any) -> Any:
    """The value of a `tf.Variable`, on its own device. TensorFlow puts what it reads on the reader's otherwise."""
    with tf.device(shard.device):
        return shard.read_value()


def assign(values: Values, variables: Mapping[str, Any]) -> None:
    """Give variables, by the names of their values, their values. At most PIECE_BYTES of these are in memory at once.

    Each parameter server reads what it holds if `values` can be read there; otherwise this process reads all.
    """
    places: dict[str | None, list[tuple[str, Rows, Any]]] = {}
    for name, variable in variables.items():
        for first, shard in shards_of(variable):
            rows = Rows(tuple(variable.shape), first, rows_of(shard))
            places.setdefault(shard.device if values.servers else None, []).append((name, rows, shard))
    side_by_side(partial(_assign, values, place, shards) for place, shards in places.items())


def _assign(values: Values, place: str | None, shards: Sequence[tuple[str, Rows, Any]]) -> None:
    """Read the rows of shards on the device `place`, and assign them."""
    pieces = ((name, whole, rows, shard) for name, whole, shard in shards for rows in whole.pieces(shard.dtype))
    for group in in_groups(pieces, lambda piece: piece[2].bytes(piece[3].dtype)):
        with tf.device(place):
            found = values.read([name for name, *_ in group], [rows.slice for _, _, rows, _ in group])
        for (_, whole, rows, shard), value in zip(group, found, strict=True):
            if rows.count == whole.count:
                shard.assign(value)
                continue
            begin = rows.first - whole.first
            with tf.device(
                shard.device
            ):  # of `shard[begin:end].assign`, which TensorFlow's wrapper of a variable lacks
                tf.raw_ops.ResourceStridedSliceAssign(
                    ref=shard.handle, begin=[begin], end=[begin + rows.count], strides=[1], value=value
                )
