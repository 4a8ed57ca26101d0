"""Evaluation of models whose class has a `test_step` of its own."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from dtjob_trainer.losses import Cut, setting, unscaled


def evaluate_replica(model: Any, cut: Cut, x: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
    """One replica's `test_step`, which updates metrics as it likes: this replica's part of the mean of what that gives.

    A replica whose row only stands in does not evaluate it.
    """
    names: list[str] = []

    def evaluate() -> list[Any]:
        with setting(unscaled, True):
            logs = model.test_step((x, y) if sample_weight is None else (x, y, sample_weight))
        names.extend(logs)
        return [tf.reduce_mean(tf.cast(value, tf.float32)) for value in logs.values()]

    if cut.may_be_empty:
        values = tf.cond(cut.examples > 0, evaluate, lambda: [tf.constant(0.0) for _ in names])
    else:
        values = evaluate()
    return {name: cut.mean(value) for name, value in zip(names, values, strict=True)}
