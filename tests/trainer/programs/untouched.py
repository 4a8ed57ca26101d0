# SPDX-License-Identifier: Apache-2.0
"""Writes what every function of TensorFlow, Keras and Python is in this process, to compare two processes."""

import importlib
import json
import signal
import sys
import types
from pathlib import Path

import keras
import tensorflow as tf
import tf_keras

PACKAGES = (
    "tensorflow",
    "keras",
    "tf_keras",
    "numpy",
    "os",
    "posix",
    "posixpath",
    "io",
    "builtins",
    "shutil",
    "pathlib",
)
PACKAGES += ("signal", "subprocess", "multiprocessing", "threading", "socket", "time", "random", "tempfile")


def what(value: object) -> str:
    """A function by its code, and any other value by its type: these are the same in each process."""
    if isinstance(value, (staticmethod, classmethod)):
        return what(value.__func__)
    if isinstance(value, property):
        return ", ".join(what(part) for part in (value.fget, value.fset) if part)
    if isinstance(value, types.FunctionType):
        return f"{value.__code__.co_filename}:{value.__code__.co_firstlineno}"
    return f"{type(value).__module__}.{type(value).__qualname__}"


def of(package: str) -> dict[str, str]:
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] != package or not isinstance(module, types.ModuleType):
            continue
        for attribute, value in list(vars(module).items()):
            found[f"{name}.{attribute}"] = what(value)
            if isinstance(value, type) and value.__module__ == name:
                found |= {f"{name}.{attribute}.{each}": what(one) for each, one in list(vars(value).items())}
    return found


for module in ("tensorflow.python.distribute.coordinator.cluster_coordinator", "keras.src.saving.saving_lib"):
    importlib.import_module(module)
functions = {name: text for package in PACKAGES for name, text in of(package).items()}
state = {
    "strategy": tf.distribute.has_strategy(),
    "of the strategy": sorted(vars(tf.distribute.get_strategy().extended)),
    "devices": len(tf.config.list_logical_devices()),
    "hooks of imports": [type(finder).__name__ for finder in sys.meta_path if "wrapt" in type(finder).__module__],
    "seed": keras.src.utils.rng_utils.get_random_seed(),
    "signals": [number.name for number in signal.Signals if callable(signal.getsignal(number))],
    "tf_keras": tf_keras.__version__,
}
Path(sys.argv[1]).write_text(json.dumps({"functions": functions, "state": state}))
