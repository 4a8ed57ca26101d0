# SPDX-License-Identifier: Apache-2.0
"""Variables that are read and assigned in pieces, so that memory holds little beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import tensorflow as tf

from dtjob_trainer.models.values import Rows, Values, in_groups
from dtjob_trainer.strategies.parameter_servers import side_by_side
from dtjob_trainer.strategies.sharded_variables import rows_of, shards_of

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
