# SPDX-License-Identifier: Apache-2.0
"""What a tape makes of each operation of a replica's step. The placements of gradients follow from those of what the
operation was given:

- by rows: rows, the gradient of one device's loss by these rows;
- by a partial tensor: the same on all replicas, as each part counts as much as the sum;
- by what is the same everywhere: partial, as each replica's rows have their part in it.

These hold for any operation, so that none needs a rule for its gradient.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from dtjob_trainer.placement import kinds
from dtjob_trainer.placement.kinds import OWN, PARTIAL, Kind, Mode, Placement
from dtjob_trainer.placement.tracker import Tracker


def placed(
    tracker: Tracker,
    inputs: Sequence[Placement | None],
    outputs: Sequence[Placement | None],
    gradients: Sequence[Any],
    take: Callable[..., Any],
) -> list[Any]:
    """The gradients of an operation by its inputs.

    - inputs, outputs: the placements of what it was given and gave.
    - gradients: those by its outputs; `take` makes gradients by the inputs of them.
    """
    with tracker.within(Mode.GRADIENT):
        given = _as_they_must_be(tracker, outputs, gradients)
        found = take(*given)
        found = [found] if tf.is_tensor(found) or isinstance(found, tf.IndexedSlices) else list(found)
        by_parts = any(place is not None for place in (*inputs, *outputs))
        partial = any(kinds.kind(_values(each)) is Kind.PARTIAL for each in given)
        untouchable = {id(_values(each)) for each in given if each is not None}
        return [
            _stamped(gradient, by, by_parts or partial, untouchable)
            for gradient, by in zip(found, inputs, strict=False)
        ] + found[len(inputs) :]


def _as_they_must_be(tracker: Tracker, outputs: Sequence[Placement | None], gradients: Sequence[Any]) -> list[Any]:
    given = [
        tracker.adjoint(gradient) if output is not None and output.kind is Kind.PARTIAL else gradient
        for output, gradient in zip(outputs, gradients, strict=False)
    ]
    if any(kinds.kind(_values(each)) is Kind.PARTIAL for each in given):
        for place, (each, output) in enumerate(zip(given, outputs, strict=True)):
            plain = isinstance(each, tf.Tensor) and each.dtype.is_floating and kinds.of(each) is None
            if output is None and plain:
                given[place] = tracker.first_only(each)
    return given


def _stamped(gradient: Any, place: Placement | None, partial: bool, untouchable: set[int]) -> Any:
    """`gradient` by a tensor that has this placement, with its own."""
    if gradient is None or not _values(gradient).dtype.is_floating:
        return gradient
    if place is None:
        is_rows = isinstance(gradient, tf.IndexedSlices) and kinds.kind(gradient.values) is Kind.ROWS
        wanted = PARTIAL if partial and not is_rows else kinds.of(_values(gradient))
    else:
        wanted = {Kind.ROWS: place, Kind.OWN: OWN}.get(place.kind)
    if wanted == kinds.of(_values(gradient)):
        return gradient
    if id(_values(gradient)) in untouchable:
        gradient = tf.identity(gradient)
    return kinds.put(gradient, wanted)


def _values(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
