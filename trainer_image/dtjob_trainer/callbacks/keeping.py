# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint keeps of callbacks: the attributes that training changes, and what get_state returns.

A callback that knows nothing of dtjob goes on after a restart by its attributes that have changed, such as a list of
losses. Those that do not change are the program's own settings, which a new process has set again. If a callback of
the program has get_state, its attributes are not kept. Of a subclass of one of Keras's with get_state, both are kept.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.callbacks import files
from dtjob_trainer.errors import CallbackError
from dtjob_trainer.frameworks import callbacks as framework
from dtjob_trainer.frameworks import packages

OWN, ATTRIBUTES, FILES, TEXT = "__own__", "__attributes__", "__files__", "__text__"
"""What a state has of a callback: what get_state returned, changed attributes, files, and a CSVLogger's text."""
LIST, FUNCTION = "__list__", "__function__"
"""A long list of numbers as an array (else each number would be text of its own in each save); a function's name."""
NUMBERS = (float, int, np.floating, np.integer)
LONG = 1000
"""Numbers from which a list is long."""
MOST_PARTS = 2**18
"""Of one attribute, so many values beside arrays and long lists are kept: to look at them all holds up each save."""
LOOKED_AT = 2**20
"""Of larger arrays, so many elements are looked at, evenly spread. To look at all would hold up each save."""
BEGAN = "_dtjob_began"
"""Attribute of a callback: what its others were as training began."""
OF_KERAS = {"_model", "model", "params", "validation_data"}
"""Attributes that Keras sets."""
OURS = "_dtjob_"
"""How the names of those begin that dtjob sets."""


def begin(callback: Any) -> None:
    """Remember how `callback` is as training begins. Its state is what has changed since."""
    if files.are_kept(callback):
        files.begin(callback)
    if _has_attributes(callback):
        vars(callback)[BEGAN] = {name: _mark(value) for name, value in _encoded(callback)[0].items()}


def _has_attributes(callback: Any) -> bool:
    """Whether attributes of `callback` are its state, or a part of that."""
    return keras_class(callback) is not None or not hasattr(callback, "get_state")


def validates_on_averages(states: Sequence[Any]) -> bool:
    """Whether the averages of a checkpoint with these callbacks' `states` are what a validation would see as weights.

    They are not where they have changed places already.
    """
    changed = [state.get(ATTRIBUTES, {}) for state in states]
    swaps = [each[framework.AVERAGES_IN_MODEL] for each in changed if framework.AVERAGES_IN_MODEL in each]
    return bool(swaps) and not any(swaps)


def is_kerass(callback: Any) -> bool:
    """Whether `callback` is of one of Keras's own classes, and not of the user's."""
    return type(callback) is keras_class(callback)


def kept(callback: Any) -> tuple[dict[str, Any], list[str]]:
    """The state of `callback` as a checkpoint holds it, and why that is not all of it, with what to write instead.

    Raises CallbackError where no checkpoint can hold what get_state returns.
    """
    state: dict[str, Any] = {}
    why: list[str] = []
    if _has_attributes(callback):
        # Keras's own replace their arrays and never change one
        changed, refused = _changed(callback, copied=not is_kerass(callback))
        if keras_name(callback) == "TensorBoard":  # what it counts: all else is of files that a process has opened
            changed = {name: value for name, value in changed.items() if type(value) is int}
        changed |= framework.averages_in_model(callback)
        state |= {ATTRIBUTES: changed} if changed else {}
        why += [
            f"no checkpoint can hold its attribute {name} ({what}); use numbers, text, lists, dicts or arrays, or give "
            "the callback get_state() and set_state(state)"
            for name, what in refused.items()
        ]
    if keras_name(callback) == "CSVLogger":
        state[TEXT] = ""
        if tf.io.gfile.exists(callback.filename):  # tf_keras's makes it with the first row
            with tf.io.gfile.GFile(callback.filename, "r") as file:
                state[TEXT] = file.read()
    if files.are_kept(callback) and (there := files.written(callback)):
        state[FILES] = there
    if hasattr(callback, "get_state"):
        state[OWN] = encode(callback.get_state())
        return state, [] if hasattr(callback, "set_state") else ["give it set_state(state), as it has get_state()"]
    return state, [] if is_kerass(callback) else why


def restore(callback: Any, state: Mapping[str, Any], model: Any) -> None:
    """Give `callback`, whose on_train_begin was called, the state that `kept` gave."""
    _restore_attributes(callback, state.get(ATTRIBUTES, {}))
    if TEXT in state:  # rows after the checkpoint will be written again
        if hasattr(callback.csv_file, "truncate"):
            callback.csv_file.truncate(0)
            callback.csv_file.seek(0)
        else:  # tf_keras's
            callback.csv_file.close()
            callback.csv_file = tf.io.gfile.GFile(callback.filename, "w")
        callback.csv_file.write(state[TEXT])
        callback.csv_file.flush()
        callback.append_header = not state[TEXT]
    if files.are_kept(callback):
        files.put_back(callback, state.get(FILES, {}))
    if keras_name(callback) == "TensorBoard" and callback.write_steps_per_second:  # as at the begin of an epoch
        framework.begin_epoch(callback, np.float32(model.optimizer.iterations.numpy()))
    if OWN in state:
        callback.set_state(state[OWN])


class Refused(ValueError):
    """No checkpoint can hold a value; the message says what it is."""


def encode(value: Any) -> Any:
    """`value` (numbers, text, lists, dicts, arrays) as `checkpoint.packing.pack` takes it, with arrays of its own.

    Raises CallbackError for anything else.
    """
    try:
        return _copied(_encode(value))
    except Refused as error:
        instead = "arrays of numbers" if "Python objects" in str(error) else "numbers, text, lists, dicts or arrays"
        raise CallbackError(f"get_state() holds {error}; return {instead}") from None


def _encode(value: Any, left: Iterator[int] | None = None) -> Any:
    """`encode` without copying. Raises Refused. `left`: ends after the most parts that are kept; None: all are."""
    if left is not None and next(left, None) is None:
        raise Refused(f"more than {MOST_PARTS} values that are not in arrays")
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise Refused("an array of Python objects")
        return array
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            return {"__pairs__": [[_encode(key, left), _encode(part, left)] for key, part in value.items()]}
        return {key: _encode(part, left) for key, part in value.items()}
    if isinstance(value, list | tuple):
        numbers = _as_array(value)
        return [_encode(part, left) for part in value] if numbers is None else {LIST: numbers}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if (name := packages.name_of(value)) is not None:
        return {FUNCTION: name}
    raise Refused(f"a {type(value).__name__}")


def _as_array(value: Sequence[Any]) -> Any:
    """A long list of numbers of one type as an array. None: it is something else."""
    kinds = {*map(type, value)} if len(value) >= LONG else {bool}
    if len(kinds) > 1 or not all(issubclass(kind, NUMBERS) for kind in kinds) or bool in kinds:
        return None
    array = np.array(value)
    return None if array.dtype.hasobject else array


def encode_history(history: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """A History's lists by name as `encode` gives them. What it refuses, which a callback may have added, is text."""

    def entry(value: Any) -> Any:
        try:
            return encode(value)
        except CallbackError:
            return str(value)

    return {name: [entry(value) for value in values] for name, values in history.items()}


def decode(value: Any) -> Any:
    """What `encode` was given (tuples come back as lists)."""
    if isinstance(value, Mapping):
        if "__pairs__" in value:
            pairs = ((decode(key), decode(part)) for key, part in value["__pairs__"])
            return {tuple(key) if isinstance(key, list) else key: part for key, part in pairs}
        if FUNCTION in value:
            return packages.function_of(value[FUNCTION])
        if LIST in value:
            array = value[LIST]
            return array.tolist() if array.dtype in (np.float64, np.int64) else list(array)
        return {key: decode(part) for key, part in value.items()}
    return [decode(part) for part in value] if isinstance(value, list) else value


def keras_name(callback: Any) -> str:
    """The name of Keras's own class that `callback` is of or derives from; empty for a plain Callback."""
    found = keras_class(callback)
    return found.__name__ if found else ""


def keras_class(callback: Any) -> type | None:
    """Keras's own class that `callback` is of or derives from; None where all code is the program's."""
    found = next((base for base in type(callback).__mro__ if packages.is_of(base)), None)
    return None if found is None or found.__name__ in framework.OF_THE_PROGRAM else found


def _changed(callback: Any, *, copied: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """The attributes that have changed since `begin`, as a checkpoint holds them; and by name, what those are that none
    can hold.

    - copied: whether to copy arrays, because the callback may change them while they are written.
    """
    before = vars(callback).get(BEGAN)
    now, refused = _encoded(callback)
    if before is None:
        return {}, refused
    # one that was None and is something now need not be looked at
    comparable = {name: value for name, value in now.items() if not (value is not None and before.get(name) == "None")}
    same = {name for name, value in comparable.items() if before.get(name) == _mark(value)}
    return {name: _copied(value) if copied else value for name, value in now.items() if name not in same}, refused


def _restore_attributes(callback: Any, values: Mapping[str, Any]) -> None:
    """Give `callback` attributes that `_changed` gave. A list or dict stays the same object, as others may use it."""
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


def _encoded(callback: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """The attributes as a checkpoint holds them; and what those are that none can hold."""
    found, refused = {}, {}
    for name, value in vars(callback).items():
        if name in OF_KERAS or name.startswith(OURS):
            continue
        try:
            found[name] = _encode(value, iter(range(MOST_PARTS)))
        except Refused as error:
            stateless = isinstance(value, type) or (isinstance(value, FunctionType) and not value.__closure__)
            if not stateless:
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
