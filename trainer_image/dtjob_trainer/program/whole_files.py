"""Files that models save to are whole at any time, although several tasks may save to the same one.

A script calls `model.save(path)` in every task. Where tasks share a volume, or the working directory of a local run,
one would write into what another one is writing.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wrapt

from dtjob_trainer.contract.task import Task

ENDS = (".keras", ".h5", ".hdf5")
"""How the names of single files end. Keras takes the format from it."""
METHODS = ("save", "save_weights")


def save_whole(task: Task) -> None:
    """Have models of Keras 3 and tf_keras write a file beside the one that they save to, and rename it then."""
    import keras

    def replace(model: Any) -> None:
        for name in METHODS:
            setattr(model, name, _whole(getattr(model, name), task))

    replace(keras.Model)
    wrapt.register_post_import_hook(lambda module: replace(module.Model), "tf_keras.src.engine.training")


def _whole(original: Callable[..., Any], task: Task) -> Callable[..., Any]:
    """The method `original`, whose first argument is a path. Other formats than a single file it writes as before."""

    @functools.wraps(original)
    def method(self: Any, filepath: Any, overwrite: bool = True, *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(filepath) if isinstance(filepath, str | os.PathLike) else ""
        asks = not overwrite and Path(path).exists()
        several = kwargs.get("max_shard_size") is not None or (original.__name__ == "save_weights" and bool(args))
        if asks or several or not path.endswith(ENDS) or "://" in path or Path(path).is_dir():
            return original(self, filepath, overwrite, *args, **kwargs)
        beside = Path(path).with_name(f".{task.id}-{Path(path).name}")
        try:
            returned = original(self, str(beside), True, *args, **kwargs)
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        return returned

    return method
