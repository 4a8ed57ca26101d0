# SPDX-License-Identifier: Apache-2.0
"""Files that models save to are whole at any time, although several tasks may save to the same one.

A script calls `model.save(path)` in every task. Where tasks share a volume, or the working directory of a local run,
one would write into what another one is writing.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtjob_trainer.contract.task import Task
from dtjob_trainer.frameworks import hooks, keras3, tensorflow, tf_keras
from dtjob_trainer.process import places
from dtjob_trainer.process.runtime import Runtime

ENDS = (".keras", ".h5", ".hdf5")
"""How the names of single files end. Keras takes the format from it."""


def save_whole(here: Runtime, task: Task) -> None:
    """Have models of Keras 3 and tf_keras write a file beside the one that they save to, and rename it then.

    In a group, variables that TensorFlow saves do so too: of `tf.train.Checkpoint`, SavedModels and `export`. The
    chief's log says, once for each directory, that a file goes with the pod, and where to write instead. The status
    names the model that the chief saved last.
    """
    said: set[Path] = set()

    def look_at(path: Path) -> None:
        if not here.is_chief or task.parent is not None or path.parent in said:
            return
        said.add(path.parent)
        if not places.is_on_volume(path) and not places.is_temporary(path):
            here.warn(f"{path} goes with the pod; write it to a volume{_such_as(task)}")

    def report(path: Path) -> None:
        if here.is_chief and not path.name.startswith("."):  # dt.save renames such a file, and reports its new name
            here.progress.report(model=str(path.absolute()))

    hooks.put(tensorflow.SAVER, lambda original: _writing_beside(original, task, look_at))
    for package in (keras3, tf_keras):
        hooks.put(package.SAVE, lambda original: _whole(original, task, look_at, report))
        hooks.put(package.SAVE_WEIGHTS, lambda original: _whole(original, task, look_at))


def _such_as(task: Task) -> str:
    if task.checkpoint is None or "://" in task.checkpoint.directory:
        return ""
    return f", such as {task.checkpoint.directory}"


def _whole(
    original: Callable[..., Any],
    task: Task,
    look_at: Callable[[Path], None],
    report: Callable[[Path], None] = lambda path: None,
) -> Callable[..., Any]:
    """The method `original`, whose first argument is a path. Other formats than a single file it writes as before.

    `look_at` is called with the path before the file is written, and `report` after it.
    """

    def method(self: Any, filepath: Any, overwrite: bool = True, *args: Any, **kwargs: Any) -> Any:
        path = os.fspath(filepath) if isinstance(filepath, str | os.PathLike) else ""
        asks = not overwrite and Path(path).exists()
        if path and "://" not in path:
            look_at(Path(path))
        several = kwargs.get("max_shard_size") is not None or (original.__name__ == "save_weights" and bool(args))
        if asks or several or not path.endswith(ENDS) or "://" in path or Path(path).is_dir():
            return original(self, filepath, overwrite, *args, **kwargs)
        beside = Path(path).with_name(f".{task.id}-{Path(path).name}")
        try:
            returned = original(self, str(beside), True, *args, **kwargs)
            beside.replace(path)
        except OSError:
            if beside.parent.is_dir():
                raise
        else:
            report(Path(path))
            return returned
        finally:
            beside.unlink(missing_ok=True)
        return original(self, filepath, True, *args, **kwargs)  # fails again, with the name that the program knows

    return method


def _writing_beside(original: Callable[..., Any], task: Task, look_at: Callable[[Path], None]) -> Callable[..., Any]:
    """The method `original` of savers. In a group it writes to a directory of this task, and renames the index last.

    TensorFlow's own temporary directory has the same name in all tasks, and the first one that ends removes it.
    """
    import tensorflow as tf

    def save(self: Any, file_prefix: Any, options: Any = None) -> Any:
        if not tf.executing_eagerly():
            return original(self, file_prefix, options)
        prefix = os.fsdecode(file_prefix.numpy() if tf.is_tensor(file_prefix) else file_prefix)
        if "://" in prefix:
            return original(self, file_prefix, options)
        path = Path(prefix)
        look_at(path)
        if not task.traits.collective:
            return original(self, file_prefix, options)
        beside = path.with_name(f".{task.id}-{path.name}")
        beside.mkdir(parents=True, exist_ok=True)
        try:
            returned = original(self, tf.constant(str(beside / path.name)), options)
            for file in sorted(beside.iterdir(), key=lambda each: each.name.endswith(".index")):
                file.replace(path.with_name(file.name))
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        return returned

    return save
