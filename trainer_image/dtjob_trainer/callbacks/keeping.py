# SPDX-License-Identifier: Apache-2.0
"""What a checkpoint keeps of callbacks: Keras's own by their attributes, the user's by get_state and set_state.

Of a user's callback without these, it keeps the attributes that training changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from dtjob_trainer.callbacks import attributes, files
from dtjob_trainer.errors import CallbackError
from dtjob_trainer.frameworks import callbacks as framework
from dtjob_trainer.frameworks import packages
from dtjob_trainer.frameworks.callbacks import AVERAGES_IN_MODEL, STATEFUL

KERASS_PART, OWN_PART = "__keras__", "__own__"
"""What a state has of a user's subclass of Keras's that has a get_state: the attributes of the one, and that."""
ATTRIBUTES = "__attributes__"
"""What a state has of a user's callback without get_state: attributes that training has changed."""
LIST = "__list__"
"""What a state has of a long list of numbers: an array. Else each number would be text of its own in each save."""
NUMBERS = (float, int, np.floating, np.integer)
LONG = 1000
"""Numbers from which a list is long."""
MOST_PARTS = 2**18
"""Of one attribute, so many values beside arrays and long lists are kept: to look at them all holds up each save."""
FILES = "files"
"""What the state of a callback has of the files that it has written."""


def begin(callback: Any) -> None:
    """Remember how `callback` is as training begins. Its state is what has changed since."""
    if files.are_kept(callback):
        files.begin(callback)
    if _has_attributes(callback):
        attributes.begin(callback, _uncopied, STATEFUL.get(keras_name(callback), ()))


def is_kept(callback: Any) -> bool:
    """Whether all of the state of `callback` is known: it is Keras's own, has get_state and set_state, or attributes
    that a checkpoint can hold."""
    if not _has_attributes(callback):
        return is_kerass(callback) or hasattr(callback, "set_state")
    return attributes.are_kept(callback, _uncopied, STATEFUL.get(keras_name(callback), ()))


def _has_attributes(callback: Any) -> bool:
    """Whether the attributes of `callback` are its state."""
    return not is_kerass(callback) and not hasattr(callback, "get_state")


def validates_on_averages(states: Sequence[Any]) -> bool:
    """Whether the averages of a checkpoint with these callbacks' `states` are what a validation would see as weights.

    They are not where they have changed places already.
    """
    parts = [state.get(KERASS_PART, state) for state in states if isinstance(state, Mapping)]
    swaps = [part[AVERAGES_IN_MODEL] for part in parts if AVERAGES_IN_MODEL in part]
    return bool(swaps) and not any(swaps)


def is_kerass(callback: Any) -> bool:
    """Whether `callback` is of one of Keras's own classes, and not of the user's."""
    return type(callback) is keras_class(callback)


def state_of(callback: Any) -> Any:
    """The state of `callback`, as `kept` has it."""
    return kept(callback)[0]


def kept(callback: Any) -> tuple[Any, list[str]]:
    """The state of `callback` as a checkpoint holds it, and why that is not all of it, with what to write instead.

    Of a user's subclass of Keras's the state is what Keras's part of it holds, and its get_state. Raises CallbackError
    where no checkpoint can hold what get_state gives.
    """
    # Keras's own replace their arrays and never change one
    kerass = encode(_kerass_state(callback), copied=not is_kerass(callback))
    if hasattr(callback, "get_state"):
        own = encode(callback.get_state())
        without = [] if hasattr(callback, "set_state") else ["give it set_state(state), as it has get_state()"]
        return ({KERASS_PART: kerass, OWN_PART: own} if kerass else own), without
    name = keras_name(callback)
    lost = [] if (kind := keras_class(callback)) is None else framework.lost(callback, kind, name)
    if is_kerass(callback):
        return kerass, lost
    changed, refused = attributes.changed(callback, _uncopied, STATEFUL.get(keras_name(callback), ()))
    why = [
        f"no checkpoint can hold its attribute {name} ({what}); use numbers, text, lists, dicts or arrays, or give the "
        "callback get_state() and set_state(state)"
        for name, what in refused.items()
    ]
    return kerass | ({ATTRIBUTES: changed} if changed else {}), lost + why


def _kerass_state(callback: Any) -> dict[str, Any]:
    name = keras_name(callback)
    state = framework.state_of(callback, name)
    if name == "CSVLogger":
        state["text"] = ""
        if tf.io.gfile.exists(callback.filename):  # tf_keras's makes it with the first row
            with tf.io.gfile.GFile(callback.filename, "r") as file:
                state["text"] = file.read()
    if files.are_kept(callback) and (there := files.written(callback)):
        state[FILES] = there
    return state


def restore(callback: Any, state: Any, model: Any) -> None:
    """Give `callback`, whose on_train_begin was called, the state that `state_of` gave."""
    in_parts = isinstance(state, Mapping) and KERASS_PART in state
    has_own = hasattr(callback, "set_state")
    if in_parts or not has_own:
        _restore_kerass(callback, state[KERASS_PART] if in_parts else state, model)
        attributes.restore(callback, state.get(ATTRIBUTES, {}))
    if has_own:
        callback.set_state(state[OWN_PART] if in_parts else state)


def _restore_kerass(callback: Any, state: Mapping[str, Any], model: Any) -> None:
    name = keras_name(callback)
    for key in STATEFUL.get(name, ()):
        if key in state:
            setattr(callback, key, state[key])
    if name == "CSVLogger":  # rows after the checkpoint will be written again
        if hasattr(callback.csv_file, "truncate"):
            callback.csv_file.truncate(0)
            callback.csv_file.seek(0)
        else:  # tf_keras's
            callback.csv_file.close()
            callback.csv_file = tf.io.gfile.GFile(callback.filename, "w")
        callback.csv_file.write(state["text"])
        callback.csv_file.flush()
        callback.append_header = not state["text"]
    if files.are_kept(callback):
        files.put_back(callback, state.get(FILES, {}))
    if name == "TensorBoard" and callback.write_steps_per_second:  # set at the begin of an epoch, which may be past
        framework.begin_epoch(callback, np.float32(model.optimizer.iterations.numpy()))


class Refused(ValueError):
    """No checkpoint can hold a value; the message says what it is."""


def encode(value: Any, *, copied: bool = True) -> Any:
    """`value` (numbers, text, lists, dicts, arrays) as `checkpoint.arrays.pack` takes it.

    - copied: whether to copy the arrays, because the callback may change them while they are written.
    """
    try:
        return _encode(value, copied, None)
    except Refused as error:
        instead = "return arrays of numbers" if "Python objects" in str(error) else f"return {_HELD}"
        raise CallbackError(f"get_state() holds {error}; {instead}") from None


_HELD = "numbers, text, lists, dicts or arrays"


def _encode(value: Any, copied: bool, left: Iterator[int] | None) -> Any:
    """`encode`. Raises Refused. `left`: ends after the most parts that are kept; None: all are."""
    if left is not None and next(left, None) is None:
        raise Refused(f"more than {MOST_PARTS} values that are not in arrays")
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise Refused("an array of Python objects")
        return array.copy() if copied else array
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            pairs = value.items()
            return {"__pairs__": [[_encode(key, copied, left), _encode(part, copied, left)] for key, part in pairs]}
        return {key: _encode(part, copied, left) for key, part in value.items()}
    if isinstance(value, list | tuple):
        numbers = _as_array(value)
        return [_encode(part, copied, left) for part in value] if numbers is None else {LIST: numbers}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise Refused(f"a {type(value).__name__}")


def _as_array(value: Sequence[Any]) -> Any:
    """A long list of numbers of one type as an array. None: it is something else."""
    kinds = {*map(type, value)} if len(value) >= LONG else {bool}
    if len(kinds) > 1 or not all(issubclass(kind, NUMBERS) for kind in kinds) or bool in kinds:
        return None
    array = np.array(value)
    return None if array.dtype.hasobject else array


def _uncopied(value: Any) -> Any:
    return _encode(value, False, iter(range(MOST_PARTS)))


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
    """Keras's own class that `callback` is of or derives from; None for a plain Callback."""
    kerass = (base for base in type(callback).__mro__ if packages.is_of(base))
    return next((base for base in kerass if base.__name__ in STATEFUL), None)
