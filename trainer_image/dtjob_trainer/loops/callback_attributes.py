# SPDX-License-Identifier: Apache-2.0
"""Attributes of a program's callbacks that change in training, such as a list of losses: a checkpoint keeps them.

So a callback that knows nothing of dtjob goes on after a restart. Attributes that do not change are the program's own
settings, which a new process has set again.
"""

import zlib
from collections.abc import Callable, Collection, Mapping
from types import FunctionType
from typing import Any

import numpy as np

BEGAN = "_dtjob_began"
"""Attribute of a callback: what its others were as training began."""
LOOKED_AT = 2**20
"""Of larger arrays, so many elements are looked at, evenly spread. To look at all would hold up each save."""
OF_KERAS = {"_model", "model", "params", "validation_data"}
"""Attributes that Keras sets."""

Encode = Callable[[Any], Any]
"""Gives a value as a checkpoint holds it, without copying arrays. Raises ValueError for others."""


def begin(callback: Any, encode: Encode, without: Collection[str]) -> None:
    """Remember what the attributes of `callback` are as training begins. `without`: names that are kept otherwise."""
    vars(callback)[BEGAN] = {name: _mark(value) for name, value in _encoded(callback, encode, without).items()}


def changed(callback: Any, encode: Encode, without: Collection[str]) -> dict[str, Any]:
    """The attributes that have changed since `begin`, as a checkpoint holds them."""
    before = vars(callback).get(BEGAN)
    if before is None:
        return {}
    now = _encoded(callback, encode, without)
    return {name: value for name, value in now.items() if before.get(name) != _mark(value)}


def restore(callback: Any, values: Mapping[str, Any]) -> None:
    """Give `callback` attributes that `changed` gave. A list or dict stays the same object, as others may use it."""
    for name, value in values.items():
        there = vars(callback).get(name)
        match there, value:
            case list(), list():
                there[:] = value
            case dict(), dict():
                there.clear()
                there.update(value)
            case tuple(), list():
                setattr(callback, name, tuple(value))
            case _, np.ndarray() if not value.shape and not isinstance(there, np.ndarray):
                setattr(callback, name, value[()])
            case _:
                setattr(callback, name, value)


def are_kept(callback: Any, encode: Encode, without: Collection[str]) -> bool:
    """Whether a checkpoint can hold all attributes of `callback`. Functions that have no state are left out."""
    names = _names(callback, without)
    kept = _encoded(callback, encode, without)
    return all(name in kept or _is_stateless(value) for name, value in vars(callback).items() if name in names)


def _encoded(callback: Any, encode: Encode, without: Collection[str]) -> dict[str, Any]:
    found = {}
    for name in _names(callback, without):
        try:
            found[name] = encode(vars(callback)[name])
        except (ValueError, RecursionError):
            continue
    return found


def _names(callback: Any, without: Collection[str]) -> list[str]:
    return [name for name in vars(callback) if name not in OF_KERAS and name != BEGAN and name not in without]


def _is_stateless(value: Any) -> bool:
    return isinstance(value, type) or (isinstance(value, FunctionType) and not value.__closure__)


def _mark(value: Any) -> str:
    """A text by which a value, as a checkpoint holds it, is told from others. It is short, however large arrays are."""
    match value:
        case np.ndarray():
            part = value if value.size <= LOOKED_AT else value.reshape(-1)[:: -(-value.size // LOOKED_AT)]
            checksum = zlib.crc32(np.ascontiguousarray(part).view(np.uint8).data) if value.size else 0
            return f"array({value.dtype}, {value.shape}, {checksum})"
        case dict():
            return f"{{{', '.join(f'{name!r}: {_mark(part)}' for name, part in value.items())}}}"
        case list():
            return f"[{', '.join(map(_mark, value))}]"
    return repr(value)
