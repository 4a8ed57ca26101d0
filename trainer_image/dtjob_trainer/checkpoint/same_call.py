# SPDX-License-Identifier: Apache-2.0
"""Whether a call of `fit` or `train` is the one that a checkpoint is of, as far as its optimizers show.

A program may leave out calls after a restart, such as those for values that it has tried. It would then get the end of
another call.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

NAMES = ("name", "module", "registered_name")
"""Keys of a config that say nothing of training. Keras numbers names in the order in which objects are made."""


def described(optimizers: Sequence[Any]) -> list[dict[str, str]]:
    """The class and the config of each optimizer as it is before the first step, as texts by their names."""
    return [
        {"optimizer": type(each).__name__, **{key: _text(value) for key, value in _config_of(each).items()}}
        for each in optimizers
    ]


def difference(now: Sequence[Mapping[str, str]], before: Sequence[Mapping[str, str]]) -> str | None:
    """The first value that is another one `now` than `before`, in words; None if there is none."""
    if len(now) != len(before):
        return f"{len(now)} optimizers, and not {len(before)}"
    for one, other in zip(now, before, strict=True):
        for key in one:
            if one[key] != other.get(key):
                return f"{key} {one[key]}, and not {other.get(key)}"
    return None


def _config_of(optimizer: Any) -> Mapping[str, Any]:
    try:
        config = _without_names(optimizer.get_config())
    except Exception:  # an optimizer of the program's own need not have one
        return {}
    return config if isinstance(config, Mapping) else {}


def _without_names(value: Any) -> Any:
    match value:
        case np.generic():  # tf_keras gives numbers as such
            return _without_names(value.item())
        case Mapping():
            return {str(key): _without_names(each) for key, each in value.items() if key not in NAMES}
        case list() | tuple():
            return [_without_names(each) for each in value]
        case float():
            return float(f"{value:.7g}")  # as many digits as float32 has
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=lambda other: type(other).__name__)
