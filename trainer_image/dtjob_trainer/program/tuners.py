# SPDX-License-Identifier: Apache-2.0
"""Searches of KerasTuner in a job, where each task makes the same trials.

- A task that is not the chief saves weights to a directory that KerasTuner removes at once, and expects to read the
  chief's. A task that does not see the files of the chief reads its own.
- After a restart, KerasTuner leaves out the trials that it has in its directory. dtjob repeats them instead: their fits
  have ended, and return at once.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtjob_trainer.contract.task import Task
from dtjob_trainer.frameworks import hooks, keras_tuner
from dtjob_trainer.process.runtime import Runtime

MARK = ".dtjob-search"
"""The file in a tuner's directory with the UID of the job that began the search."""
AGAIN = "the search of KerasTuner begins anew, because the program runs again from the top; fits that had ended return"


def search_again(here: Runtime, task: Task) -> None:
    """Have tuners work so, once the program imports KerasTuner."""
    if task.traits.collective:
        hooks.put(keras_tuner.WEIGHTS_PATH, lambda _: lambda filepath, strategy: filepath)
        hooks.put(keras_tuner.WEIGHTS_REMOVED, lambda _: lambda filepath, strategy: None)
    if task.traits.collective or task.checkpoint is not None:
        begin_anew(task.uid, here.log)


def begin_anew(uid: str, log: Callable[[str], None], tuner: Any = None) -> None:
    """Have tuners not load a search that an earlier process of the job with this `uid` began.

    They load what this process or something else than the job has left.

    - tuner: a class in place of KerasTuner's.
    """
    by_this_process: set[Path] = set()

    def save(own: Callable[[Any], None], self: Any) -> None:
        own(self)
        mark = Path(self.project_dir) / MARK
        if "://" not in str(self.project_dir) and not getattr(self, "_loaded_from_others", False):
            by_this_process.add(mark.absolute())
            mark.write_text(uid)

    def load(own: Callable[[Any], None], self: Any) -> None:
        mark = Path(self.project_dir) / MARK
        of_the_job = mark.is_file() and mark.read_text() == uid
        if of_the_job and mark.absolute() not in by_this_process:
            log(AGAIN)
            keras_tuner.begin_search(self)
            return
        self._loaded_from_others = not of_the_job
        own(self)

    hooks.put(keras_tuner.TUNER_SAVED, hooks.around(save), on=tuner)
    hooks.put(keras_tuner.TUNER_LOADED, hooks.around(load), on=tuner)
