# SPDX-License-Identifier: Apache-2.0
"""The sums of gradients that tf_keras's optimizers take over replicas, with the slices that one device has."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from dtjob_trainer.frameworks import hooks, tf_keras
from dtjob_trainer.models.gradients import indexed_slices
from dtjob_trainer.placement import sums, tracker


def of_one_device(doubt: Callable[[Any], object] = lambda variable: None) -> AbstractContextManager[None]:
    """While this lasts, tf_keras's optimizers sum as one device does.

    - doubt: called with a table if it is not known how rows are looked up in it (`indexed_slices.summed`).
    """
    return hooks.during(tf_keras.GRADIENTS_SUMMED, lambda own: partial(_summed, own, doubt))


def _summed(
    sum_pairs: Callable[[list[Any]], list[Any]], doubt: Callable[[Any], object], gradients: Iterable[Any]
) -> list[Any]:
    """The sums over replicas of (gradient, variable) pairs by `sum_pairs`, with the slices that one device has."""
    pairs = list(gradients)
    tf_keras.warn_of_missing(pairs)  # which warns of those that have none
    parts, variables = [gradient for gradient, _ in pairs], [variable for _, variable in pairs]
    found = tracker.current()
    if found is not None:
        return list(zip(sums.of_one_device(found, parts), variables, strict=True))

    def sum_all(parts: list[Any]) -> list[Any]:
        return [total for total, _ in sum_pairs([(part, variables[0]) for part in parts])]

    totals = indexed_slices.summed(parts, sum_all, lambda place: doubt(variables[place]))
    return list(zip(totals, variables, strict=True))
