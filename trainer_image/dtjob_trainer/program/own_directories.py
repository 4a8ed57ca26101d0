# SPDX-License-Identifier: Apache-2.0
"""SavedModels of a group: each task that is not the chief has a directory of its own beside the one that it names.

`saved_model.pb` names the variables by keys whose order may differ between tasks: TensorFlow keeps the variables of a
function in a set. Beside the variables of another task, it would give the wrong weights in silence.
"""

import inspect
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtjob_trainer.checkpoint.directory import TEMPORARY_MODEL
from dtjob_trainer.contract.task import Task
from dtjob_trainer.frameworks import hooks, tensorflow, tf_keras
from dtjob_trainer.process.runtime import Runtime


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
