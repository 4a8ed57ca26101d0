# SPDX-License-Identifier: Apache-2.0
"""Files that models save to are whole at any time, although several tasks may save to the same one.

A script calls `model.save(path)` in every task. Where tasks share a volume, or the working directory of a local run,
one would write into what another one is writing.

SavedModels of a group have a directory for each task that is not the chief, beside the one that the task names.
`saved_model.pb` names the variables by keys whose order may differ between tasks: TensorFlow keeps the variables of a
function in a set. Beside the variables of another task, it would give the wrong weights in silence.
"""

import inspect
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dtjob_trainer.checkpoint.directory import TEMPORARY_MODEL, flush
from dtjob_trainer.contract.task import Task
from dtjob_trainer.frameworks import hooks, keras3, tensorflow, tf_keras
from dtjob_trainer.process import places
from dtjob_trainer.process.runtime import Runtime

ENDS = (".keras", ".h5", ".hdf5")
"""How the names of single files end. Keras takes the format from it."""

OnPath = Callable[[Path], None]


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
            named = task.checkpoint is not None and "://" not in task.checkpoint.directory
            such_as = f", such as {task.checkpoint.directory}" if task.checkpoint is not None and named else ""
            here.warn(f"{path} goes with the pod; write it to a volume{such_as}")

    def report(path: Path) -> None:
        if here.is_chief and not path.name.startswith("."):  # dt.save renames such a file, and reports its new name
            here.progress.report(model=str(path.absolute()))

    hooks.put(tensorflow.SAVER, hooks.around(partial(_save_beside, task, look_at)))
    for package in (keras3, tf_keras):
        hooks.put(package.SAVE, hooks.around(partial(_save, task, look_at, report)))
        hooks.put(package.SAVE_WEIGHTS, hooks.around(partial(_save, task, look_at, lambda path: None)))


def _save(
    task: Task,
    look_at: OnPath,
    report: OnPath,
    own: Callable[..., Any],
    model: Any,
    filepath: Any,
    overwrite: bool = True,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Save by `own`, a method of models. Other formats than a single file it writes as before.

    `look_at` is called with the path before the file is written, and `report` after it.
    """
    path = os.fspath(filepath) if isinstance(filepath, str | os.PathLike) else ""
    asks = not overwrite and Path(path).exists()
    if path and "://" not in path:
        look_at(Path(path))
    several = kwargs.get("max_shard_size") is not None or (own.__name__ == "save_weights" and bool(args))
    if asks or several or not path.endswith(ENDS) or "://" in path or Path(path).is_dir():
        return own(model, filepath, overwrite, *args, **kwargs)
    beside = Path(path).with_name(f".{task.id}-{Path(path).name}")
    try:
        returned = own(model, str(beside), True, *args, **kwargs)
        flush(str(beside))
        beside.replace(path)
    except OSError:
        if beside.parent.is_dir():
            raise
    else:
        report(Path(path))
        return returned
    finally:
        beside.unlink(missing_ok=True)
    return own(model, filepath, True, *args, **kwargs)  # fails again, with the name that the program knows


def _save_beside(
    task: Task, look_at: OnPath, own: Callable[..., Any], saver: Any, file_prefix: Any, options: Any = None
) -> Any:
    """Save by `own`, the method of savers. In a group to a directory of this task; the index is renamed last.

    TensorFlow's own temporary directory has the same name in all tasks, and the first one that ends removes it.
    """
    import tensorflow as tf

    if not tf.executing_eagerly():
        return own(saver, file_prefix, options)
    prefix = os.fsdecode(file_prefix.numpy() if tf.is_tensor(file_prefix) else file_prefix)
    path = Path(prefix)
    if "://" not in prefix:
        look_at(path)
    if "://" in prefix or not task.traits.collective:
        return own(saver, file_prefix, options)
    beside = path.with_name(f".{task.id}-{path.name}")
    beside.mkdir(parents=True, exist_ok=True)
    try:
        returned = own(saver, tf.constant(str(beside / path.name)), options)
        flush(str(beside))
        for file in sorted(beside.iterdir(), key=lambda each: each.name.endswith(".index")):
            file.replace(path.with_name(file.name))
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return returned


def keep_apart(here: Runtime, task: Task) -> None:
    """Have this task write SavedModels to `.TASK-NAME` in place of NAME, and read those that it wrote from there.

    The chief's are where the program asks for them. Both `tf.saved_model` and tf_keras do so. The end of the process
    removes the directories of this task, also after SIGTERM or a lost peer.
    """
    if task.is_chief:
        return
    directories = OwnDirectories(task.id)
    here.before_the_end = here.shutdown.release = directories.remove
    hooks.put(tensorflow.SAVED_MODEL_WRITTEN, lambda original: directories.writing(original, "export_dir"))
    hooks.put(tensorflow.SAVED_MODEL_READ, lambda original: directories.reading(original, "export_dir"))
    hooks.put(tf_keras.SAVED_MODEL_WRITTEN, lambda original: directories.writing(original, "filepath"))
    hooks.put(tf_keras.SAVED_MODEL_READ, lambda original: directories.reading(original, "filepath"))


class OwnDirectories:
    """The directories that one task of a group has written. `task`: how their names begin."""

    def __init__(self, task: str) -> None:
        self._begin = f".{task}-"
        self._written: set[Path] = set()

    def writing(self, original: Callable[..., Any], argument: str) -> Callable[..., Any]:
        """`original`, which writes the directory that its argument of this name gives."""

        def chosen(path: Path) -> Path:
            if path.name.startswith((self._begin, TEMPORARY_MODEL)):  # tf_keras calls TensorFlow; or dtjob itself saves
                return path
            self._written.add(path)
            return self._own(path)

        return _elsewhere(original, argument, chosen)

    def reading(self, original: Callable[..., Any], argument: str) -> Callable[..., Any]:
        """`original`, which reads the directory that its argument of this name gives."""
        return _elsewhere(original, argument, lambda path: self._own(path) if path in self._written else path)

    def remove(self) -> None:
        """Remove all that this task has written: otherwise each task leaves a copy."""
        for path in tuple(self._written):  # SIGTERM is answered by another thread
            shutil.rmtree(self._own(path), ignore_errors=True)

    def _own(self, path: Path) -> Path:
        return path.with_name(f"{self._begin}{path.name}")


def _elsewhere(original: Callable[..., Any], argument: str, choose: Callable[[Path], Path]) -> Callable[..., Any]:
    """`original` with the path that `choose` gives in place of `argument`, unless that is a URI."""
    signature = inspect.signature(original)

    def function(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        value = given.arguments.get(argument)
        path = os.fsdecode(value) if isinstance(value, str | bytes | os.PathLike) else ""
        if path and "://" not in path:
            given.arguments[argument] = str(choose(Path(path).resolve()))
        return original(*given.args, **given.kwargs)

    return function
