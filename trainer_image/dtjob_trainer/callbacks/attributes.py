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
"""Gives a value as a checkpoint holds it, without copying arrays. Raises ValueError, which says what it is, for others.
"""


def begin(callback: Any, encode: Encode, without: Collection[str]) -> None:
    """Remember what the attributes of `callback` are as training begins. `without`: names that are kept otherwise."""
    found, _ = _encoded(callback, encode, without)
    vars(callback)[BEGAN] = {name: _mark(value) for name, value in found.items()}


def changed(callback: Any, encode: Encode, without: Collection[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The attributes that have changed since `begin`, as a checkpoint holds them; and by name, what those are that none
    can hold."""
    before = vars(callback).get(BEGAN)
    now, refused = _encoded(callback, encode, without)
    if before is None:
        return {}, refused
    return {name: _copied(value) for name, value in now.items() if before.get(name) != _mark(value)}, refused


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
    return not _encoded(callback, encode, without)[1]


def _encoded(callback: Any, encode: Encode, without: Collection[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The attributes as a checkpoint holds them; and what those are that none can hold."""
    found, refused = {}, {}
    for name in _names(callback, without):
        value = vars(callback)[name]
        try:
            found[name] = encode(value)
        except ValueError as error:
            if not _is_stateless(value):
                refused[name] = str(error)
        except RecursionError:
            refused[name] = f"a {type(value).__name__} that holds itself"
    return found, refused


def _copied(value: Any) -> Any:
    """`value`, as a checkpoint holds it, with arrays of its own: the callback may change its arrays meanwhile."""
    match value:
        case np.ndarray():
            return value.copy()
        case dict():
            return {name: _copied(part) for name, part in value.items()}
        case list():
            return [_copied(part) for part in value]
    return value


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
