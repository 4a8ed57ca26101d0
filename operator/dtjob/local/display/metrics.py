# SPDX-License-Identifier: Apache-2.0
"""Metrics in words. Pure."""

from collections.abc import Mapping
from typing import Any

ACCURACIES = ("val_accuracy", "accuracy", "val_acc", "acc")


def metrics_text(metrics: Mapping[str, Any]) -> str:
    """Metrics in words, accuracy first: `accuracy 0.953, loss 0.21`."""
    names = sorted(metrics, key=lambda name: (name not in ACCURACIES, name))
    return ", ".join(f"{name} {metrics[name]:.4g}" for name in names if isinstance(metrics[name], (int, float)))
