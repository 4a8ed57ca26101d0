# SPDX-License-Identifier: Apache-2.0
"""A scalar that a replica computes of its rows, as what it contributes to one device's scalar of the global batch.

A mean over rows is weighted by rows, and a sum is summed. Any other is computed by each replica over all rows of the
global batch. Gradients flow through the replica's own rows alone, so that their sum over the replicas is one device's
gradient.
"""

import contextlib
import sysconfig
import threading
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

from dtjob_trainer.models import global_rows
from dtjob_trainer.models.by_rows import blocks, inlined, trials
from dtjob_trainer.models.by_rows.slices import Edge, Slice, UnknownPartError, cut_out, key_of, maker_of
from dtjob_trainer.models.cuts import Cut, setting

_PACKAGES = (*(sysconfig.get_paths()[name] for name in ("purelib", "stdlib")), str(Path(__file__).parents[2]), "<")
"""Where files are that are not the program's own; the last is how Python begins the name of what is no file."""


@dataclass
class Traced:
    """What is known of one replica's step while it is traced."""

    rows: set[Any] = field(default_factory=set)
    """Keys of tensors whose rows are the batch's: its data and what layers make of it."""
    means: set[Any] = field(default_factory=set)
    """Keys of losses that stand for means over rows already."""
    parts: set[Any] = field(default_factory=set)
    """Keys of the components of ragged and sparse tensors."""
    blocks: dict[Any, int] = field(default_factory=dict)
    """By key of one of `rows`, how many blocks of the batch's rows it has, unless that is one."""
    spoken: dict[Any, Any] = field(default_factory=dict)
    """By key of a loss that gradients were taken of, or of a number that is reported: `alone` of it."""

    @property
    def edge(self) -> Edge:
        """Where parts of the step begin."""
        return Edge(self.rows, self.means, self.parts, self.blocks)


_traced: ContextVar[Traced | None] = ContextVar("traced", default=None)
_warned: set[str] = set()
_lock = threading.Lock()  # each replica is traced in a thread of its own


def current() -> Traced | None:
    """What is known of the step that is being traced, None where no replicas share it."""
    return _traced.get()


@contextlib.contextmanager
def tracing(cut: Cut, data: Any) -> Iterator[None]:
    """While this lasts, a replica's step on `data` is traced, with the functions that it calls."""
    if cut.replicas == 1:
        yield
        return
    traced = Traced()
    note_rows(traced, data)
    with setting(_traced, traced), inlined.functions():
        yield


def note_rows(traced: Traced, structure: Any) -> None:
    """Note the tensors of `structure` that have rows, and the components of those that are ragged or sparse."""
    for tensor in tf.nest.flatten(structure):
        if isinstance(tensor, tf.RaggedTensor | tf.SparseTensor):
            traced.parts |= {key_of(part) for part in tf.nest.flatten(tensor, expand_composites=True)}
        elif _is_symbolic(tensor) and tensor.shape.rank and tensor.shape[0] is None:
            key = key_of(tensor)
            count = blocks.blocks_of(tensor, traced.rows, traced.blocks)
            traced.rows.add(key)
            if count != 1:
                traced.blocks[key] = count


def alone(value: Any, cut: Cut, name: str | None = None) -> Any:
    """What stands for `value` such that its mean over the replicas, weighted by rows, is one device's `value`.

    - name: what the log calls the loss, where it is known; otherwise the line of the program is named.
    """
    part, kind = seen(value, name)
    if kind == "sum":
        return summed(value, cut)
    return whole(part, cut, name) if kind == "neither" and part is not None else value


def share(value: Any, cut: Cut, name: str | None = None) -> Any:
    """What a replica contributes to one device's `value`: the sum over the replicas. `name` as above."""
    part, kind = seen(value, name)
    if kind == "sum":
        return cut.counted(value)
    return cut.mean(whole(part, cut, name) if kind == "neither" and part is not None else value)


def reported(value: Any, cut: Cut) -> Any:
    """`alone` of a `value` that a step reports, also where it is no loss; numbers made of gradients stay."""
    traced = current()
    if traced is None or not _is_symbolic(value) or value.shape.rank != 0 or not value.dtype.is_floating:
        return value
    key = key_of(value)
    if key not in traced.spoken:
        try:
            part = cut_out(value, traced.edge)
        except UnknownPartError:
            return value
        kind = "mean" if part.follows_gradients or _has_unknown_rows(part) else trials.kind_of(part)
        if kind == "neither":
            traced.spoken[key] = whole(part, cut)
        else:
            traced.spoken[key] = summed(value, cut) if kind == "sum" else value
    return traced.spoken[key]


def summed(value: Any, cut: Cut) -> Any:
    """`alone` of a `value` that is a sum over rows."""
    return cut.by_itself.spoken(cut.counted(value))


def seen(value: Any, name: str | None = None) -> tuple[Slice | None, trials.Kind]:
    """The part of the step that makes `value`, and how it depends on rows.

    What cannot be cut out is taken as a mean over rows, with a warning.
    """
    traced = current()
    if traced is None or not _is_symbolic(value):
        return None, "mean"
    try:
        part = cut_out(value, traced.edge)
        kind = trials.kind_of(part)
        if kind == "neither" and not part.differentiable:
            raise UnknownPartError("the program has written a gradient of its own")
        if kind == "neither" and _has_unknown_rows(part):
            raise UnknownPartError(
                "it depends on rows beside those of the batch, or on some rows of several views of it"
            )
    except UnknownPartError as error:
        _warn(value, name, f"is taken as a mean over rows, which may be wrong: {error}")
        return None, "mean"
    return part, kind


def whole(part: Slice, cut: Cut, name: str | None = None) -> Any:
    """The target of `part` of all rows of the global batch; its gradient counts as that of a mean over own rows."""
    _warn(
        part.target,
        name,
        "is neither a mean nor a sum over rows, so each replica computes it over all rows of the global batch. Each "
        "step gathers these rows, and the loss costs each replica as much as it costs one device.",
    )
    parts = [(blocks.apart(source.tensor, source.blocks), source.kind) for source in part.sources]
    joined = zip(global_rows.joined(parts, cut), part.sources, strict=True)
    with inlined.nothing():
        return part.function()(*(blocks.together(each, source.blocks) for each, source in joined))


def _has_unknown_rows(part: Slice) -> bool:
    """Whether `part` depends on rows of which nobody knows the blocks."""
    return any(source.blocks == blocks.UNKNOWN for source in part.sources)


def _warn(value: Any, name: str | None, message: str) -> None:
    """Warn once of a loss; the log names it, or the line that made it."""
    place = (f"loss {name}", 1) if name is not None else maker_of(value.op, _is_no_program)
    file, line = place or ("loss", 1)
    text = f"{file}:{line}: {message}"
    with _lock:
        if text in _warned:
            return
        _warned.add(text)
    unnamed = "the loss or metric of this line" if place else "a loss or metric of the program"
    what = f"{unnamed if name is None else 'it'} {message}"
    warnings.warn_explicit(what, UserWarning, file, line)


def _is_no_program(file: str) -> bool:
    return file.startswith(_PACKAGES)


def _is_symbolic(value: Any) -> bool:
    return isinstance(value, tf.Tensor) and not isinstance(value, tf.__internal__.EagerTensor)
