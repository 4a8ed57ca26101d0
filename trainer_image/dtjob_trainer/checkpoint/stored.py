# SPDX-License-Identifier: Apache-2.0
"""A checkpoint on disk, of which only what is asked for is in memory."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.checkpoint.directory import STATE, foreign
from dtjob_trainer.models.values import Rows, Values, form_of, in_groups
from dtjob_trainer.strategies.parameter_servers import side_by_side


class Stored(Values):
    """The variables of a whole checkpoint.

    All is read by TensorFlow's operation: its reader object tells damage, absence and refusal by one class of error.
    """

    def __init__(self, directory: str, step: int, servers: Sequence[str] = ()) -> None:
        """Reads `state` and names. `servers`: the devices of parameter servers that can read it, too.

        Raises CheckpointError where it is not one of ours, one of UNREADABLE where it is damaged, and NotFoundError
        where it is gone. So does `read`.
        """
        self.name, self.servers = f"{directory}/ckpt-{step}", servers
        self._types: dict[str, Any] = {STATE: tf.uint8}
        try:
            self.state: dict[str, Any] = json.loads(np.asarray(self.read([STATE])[0]).tobytes())
            """All that is no variable, with the names of arrays in place of these."""
        except tf.errors.NotFoundError:
            if not tf.train.load_checkpoint(self.name).has_tensor(STATE):
                raise foreign(directory, step) from None
            raise
        reader = tf.train.load_checkpoint(self.name)
        shapes, self._types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        self.forms = {name: form_of(shapes[name], self._types[name]) for name in sorted(shapes) if name != STATE}

    def read(self, names: Sequence[str], slices: Sequence[str] | None = None) -> list[Any]:
        """The tensors of these names, on the CPU of the present device's task."""
        if not names:
            return []
        with tf.device("CPU:0"):
            return list(
                tf.raw_ops.RestoreV2(
                    prefix=self.name,
                    tensor_names=list(names),
                    shape_and_slices=[""] * len(names) if slices is None else list(slices),
                    dtypes=[self._types[name] for name in names],
                )
            )

    def verify(self) -> None:
        """Read all of it once. Raises one of UNREADABLE where it is damaged: before a run has taken anything of it."""
        pieces = (
            (name, rows.slice, rows.bytes(dtype))
            for name, (shape, dtype) in self.forms.items()
            for rows in Rows(shape, 0, shape[0] if shape else 1).pieces(dtype)
        )
        groups = list(in_groups(pieces, lambda piece: piece[2]))

        def read(server: str | None, mine: Sequence[Sequence[tuple[str, str, int]]]) -> None:
            with tf.device(server):
                for group in mine:
                    names, slices, _ = zip(*group, strict=True)
                    self.read(names, slices)

        places: Sequence[str | None] = self.servers or [None]
        side_by_side(partial(read, place, groups[n :: len(places)]) for n, place in enumerate(places))
