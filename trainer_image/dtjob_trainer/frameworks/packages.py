# SPDX-License-Identifier: Apache-2.0
"""Which code is of Keras 3 or tf_keras itself, and which is of the program."""

from typing import Any

KERAS = ("keras.", "tf_keras.")
"""How the names of modules of both packages begin."""


def is_of(part: Any, packages: str | tuple[str, ...] = KERAS) -> bool:
    """Whether a class or a function is of one of `packages`, given as the begins of names of modules."""
    return str(getattr(part, "__module__", "")).startswith(packages)


def home(kind: type, name: str) -> type | None:
    """The class that `kind` has its attribute `name` from; None if it has none of that name."""
    return next((base for base in kind.__mro__ if name in vars(base)), None)
