"""What the `train_step` and `test_step` of a model's own return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from dtjob_trainer.models.losses import Cut, setting, unscaled


def flat(logs: Any) -> dict[str, Any]:
    """What a step returned as one dict, without dicts inside it: those Keras takes apart as well."""
    found: dict[str, Any] = {}
    for name, value in (logs or {}).items():
        found |= flat(value) if isinstance(value, Mapping) else {name: value}
    return found


def evaluate_replica(step: Callable[[], Any], cut: Cut) -> dict[str, Any]:
    """One replica's test `step`, which updates metrics as it likes: its part of the mean of what that gives.

    A replica whose row only stands in does not evaluate it.
    """
    names: list[str] = []

    def evaluate() -> list[Any]:
        with setting(unscaled, True):
            logs = flat(step())
        names.extend(logs)
        return [tf.reduce_mean(tf.cast(value, tf.float32)) for value in logs.values()]

    if cut.may_be_empty:
        values = tf.cond(cut.examples > 0, evaluate, lambda: [tf.constant(0.0) for _ in names])
    else:
        values = evaluate()
    return {name: cut.mean(value) for name, value in zip(names, values, strict=True)}
