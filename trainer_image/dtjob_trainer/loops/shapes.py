# SPDX-License-Identifier: Apache-2.0
"""The shapes of a model and of its data in words, for whoever has given it data of another shape."""

from typing import Any

import keras


def told(model: Any, spec: tuple[Any, Any, Any]) -> str:
    """What `fit` was given, `spec` being (x, y, sample weights) of a batch: `x (None, 8), y (None, 7), …`."""
    parts = {"x": spec[0], "y": spec[1]}
    parts |= {"the model takes": getattr(model, "inputs", None), "and gives": getattr(model, "outputs", None)}
    return ", ".join(f"{name} {shape}" for name, part in parts.items() if (shape := _shapes(part)))


def _shapes(part: Any) -> str:
    """The shapes of a structure of tensors or specs, in its order; empty where there are none."""
    shapes = [tuple(one.shape) for one in keras.tree.flatten(part) if getattr(one, "shape", None) is not None]
    return " and ".join(str(shape) for shape in shapes)
