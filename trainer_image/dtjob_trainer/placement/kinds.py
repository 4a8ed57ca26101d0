# SPDX-License-Identifier: Apache-2.0
"""What a tensor of a replica's trace is. A tensor without a placement is the same on all replicas.

A placement is an attribute of the tensor. Each replica is traced with tensors of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from typing import Any

import tensorflow as tf

_NAME = "_dtjob_placement"
Make = Callable[..., Any]
"""Makes an operation: (op_type, inputs) → tf.Operation."""


class Kind(Enum):
    """How the replicas' values of a tensor make one device's."""

    ROWS = auto()
    """One after another along the first dimension."""
    PARTIAL = auto()
    """Their sum."""
    SIZE = auto()
    """A number of rows, or a shape that begins with one. `total` is one device's."""
    OWN = auto()
    """Not at all: a replica uses the value for its own rows, as the statistics of its batch normalization."""
    LOCAL = auto()
    """Numbers by which a replica finds its own rows, such as the row splits of ragged ones. `make` gives one device's,
    if anything uses them as numbers."""
    LATER = auto()
    """The result of a metric, which `make` computes if anything uses it."""


@dataclass(frozen=True)
class Placement:
    """What one tensor is."""

    kind: Kind
    blocks: int = 1
    """How many times the first dimension runs through the batch's rows: 2 for `tf.concat([rows, rows], 0)`."""
    units: Fraction | None = Fraction(1)
    """Entries of the first dimension for one row of the batch; None where that is not known."""
    total: Any = None
    make: Callable[[], Any] | None = None
    shared: bool = False
    """Whether LOCAL numbers of replicas follow one another along the first dimension, as rows do."""


class Mode(Enum):
    """How placements follow."""

    OFF = auto()
    STEP = auto()
    """By rules; inputs are replaced where a rule says so."""
    LAYER = auto()
    """Row by row, whatever the operation; nothing is replaced."""
    GRADIENT = auto()
    """Of an operation that is differentiated: linear in gradients that are placed as they must be."""


ROWS = Placement(Kind.ROWS)
PARTIAL = Placement(Kind.PARTIAL)
OWN = Placement(Kind.OWN)


def of(tensor: Any) -> Placement | None:
    """The placement of `tensor`; None for one that is the same on all replicas."""
    return getattr(tensor, _NAME, None)


def put(tensor: Any, placement: Placement | None) -> Any:
    """Give `tensor`, or the values of slices, this placement; returns it."""
    if isinstance(tensor, tf.IndexedSlices):
        put(tensor.values, placement)
    elif placement is not None or of(tensor) is not None:
        setattr(tensor, _NAME, placement)
    return tensor


def kind(tensor: Any) -> Kind | None:
    """The kind of `tensor`; None for one that is the same on all replicas."""
    found = of(tensor)
    return None if found is None else found.kind


def has_fractions(dtype: Any) -> bool:
    """Whether numbers of this type are no whole ones, so that parts of a quotient add up to it."""
    return bool(dtype.is_floating or dtype.is_complex)


def is_open(tensor: Any) -> bool:
    """Whether the size of the first dimension of `tensor` is not known."""
    return bool(tensor.shape.rank) and tensor.shape[0] is None


def any_open(tensor: Any) -> bool:
    """Whether the size of any dimension of `tensor` is not known."""
    shape = tensor.shape
    return shape.rank is None or any(size is None for size in shape)


def put_all(operation: Any, places: Any) -> Any:
    """Give what `operation` gives these placements, one for all or a list; returns it."""
    every = places if isinstance(places, list) else [places] * len(operation.outputs)
    for output, place in zip(operation.outputs, every, strict=False):
        put(output, place)
    return operation
