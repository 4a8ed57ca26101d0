# SPDX-License-Identifier: Apache-2.0
"""Attributes of a program's callbacks that change in training, such as a list of losses: a checkpoint keeps them.

So a callback that knows nothing of dtjob goes on after a restart. Attributes that do not change are the program's own
settings, which a new process has set again.
"""

import zlib
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

BEGAN = "_dtjob_began"
"""Attribute of a callback: what its others were as training began."""
LOOKED_AT = 2**20
"""Of larger arrays, so many elements are looked at, evenly spread. To look at all would hold up each save."""
OF_KERAS = {"_model", "model", "params", "validation_data"}
"""Attributes that Keras sets."""
OURS = "_dtjob_"
"""How the names of those begin that dtjob sets."""

Encode = Callable[[Any], Any]
"""Gives a value as a checkpoint holds it, without copying arrays. Raises ValueError, which says what it is, for others.
"""


def begin(callback: Any, encode: Encode) -> None:
    """Remember what the attributes of `callback` are as training begins."""
    found, _ = _encoded(callback, encode)
    vars(callback)[BEGAN] = {name: _mark(value) for name, value in found.items()}


def changed(callback: Any, encode: Encode, *, copied: bool = True) -> tuple[dict[str, Any], dict[str, str]]:
    """The attributes that have changed since `begin`, as a checkpoint holds them; and by name, what those are that none
    can hold.

    - copied: whether to copy arrays, because the callback may change them while they are written.
    """
    before = vars(callback).get(BEGAN)
    now, refused = _encoded(callback, encode)
    if before is None:
        return {}, refused
    # one that was None and is something now need not be looked at
    new = {name: value for name, value in now.items() if not (value is not None and before.get(name) == "None")}
    same = {name for name, value in new.items() if before.get(name) == _mark(value)}
    return {name: _copied(value) if copied else value for name, value in now.items() if name not in same}, refused


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


def are_kept(callback: Any, encode: Encode) -> bool:
    """Whether a checkpoint can hold all attributes of `callback`. Functions that have no state are left out."""
    return not _encoded(callback, encode)[1]


def _encoded(callback: Any, encode: Encode) -> tuple[dict[str, Any], dict[str, str]]:
    """The attributes as a checkpoint holds them; and what those are that none can hold."""
    found, refused = {}, {}
    for name, value in vars(callback).items():
        if name in OF_KERAS or name.startswith(OURS):
            continue
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
