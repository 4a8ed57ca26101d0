# SPDX-License-Identifier: Apache-2.0
"""Which code is of Keras 3 or tf_keras itself, and which is of the program."""

from importlib import import_module
from types import FunctionType
from typing import Any

from dtjob_trainer.frameworks.hooks import read

KERAS = ("keras.", "tf_keras.")
"""How the names of modules of both packages begin."""


def is_of(part: Any, packages: str | tuple[str, ...] = KERAS) -> bool:
    """Whether a class or a function is of one of `packages`, given as the begins of names of modules."""
    return str(getattr(part, "__module__", "")).startswith(packages)


def home(kind: type, name: str) -> type | None:
    """The class that `kind` has its attribute `name` from; None if it has none of that name."""
    return next((base for base in kind.__mro__ if name in vars(base)), None)


def name_of(value: Any) -> str | None:
    """The name by which a function of a package is imported, as the one that compares metrics. None: it is none."""
    if not isinstance(value, FunctionType) or not is_of(value):
        return None
    module, name = value.__module__, value.__qualname__
    return f"{module}:{name}" if getattr(import_module(module), name, None) is value else None


def function_of(name: str) -> Any:
    """The function that `name_of` gave this name."""
    module, _, function = name.partition(":")
    if not module.startswith(KERAS):
        raise ValueError(f"{name} is no function of Keras")
    return getattr(import_module(module), function)


_ROWS = "see whether a metric counts rows"


def wrapped_by(metric: Any) -> Any:
    """The function that a metric takes the mean of; None of any other metric."""
    if _is_mean(metric):
        return read(metric, "_fn", _ROWS)
    return getattr(metric, "_fn", None)


def axis_of(metric: Any) -> Any:
    """The axis, or axes, along which the function of a metric computes: the last one if none is given."""
    return read(metric, "_fn_kwargs", _ROWS).get("axis", -1) if _is_mean(metric) else -1


def _is_mean(metric: Any) -> bool:
    return any(base.__name__ == "MeanMetricWrapper" and is_of(base) for base in type(metric).__mro__)
