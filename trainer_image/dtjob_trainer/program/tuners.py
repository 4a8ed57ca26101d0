# SPDX-License-Identifier: Apache-2.0
"""Searches of KerasTuner in a job, where each task makes the same trials.

- A task that is not the chief saves weights to a directory that KerasTuner removes at once, and expects to read the
  chief's. A task that does not see the files of the chief reads its own.
- After a restart, KerasTuner leaves out the trials that it has in its directory. dtjob repeats them instead: their fits
  have ended, and return at once.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wrapt

from dtjob_trainer.contract.task import Task
from dtjob_trainer.process.runtime import Runtime

MARK = ".dtjob-search"
"""The file in a tuner's directory with the UID of the job that began the search."""
AGAIN = "the search of KerasTuner begins anew, because the program runs again from the top; fits that had ended return"


def search_again(here: Runtime, task: Task) -> None:
    """Have tuners work so, once the program imports KerasTuner."""
    if task.traits.collective:
        wrapt.register_post_import_hook(_write_in_place, "keras_tuner.src.backend.io")
    if task.traits.collective or task.checkpoint is not None:
        wrapt.register_post_import_hook(
            lambda module: begin_anew(module.BaseTuner, task.uid, here.log), "keras_tuner.src.engine.base_tuner"
        )


def _write_in_place(io: Any) -> None:
    io.write_filepath = lambda filepath, strategy: filepath
    io.remove_temp_dir_with_filepath = lambda filepath, strategy: None


def begin_anew(tuner: Any, uid: str, log: Callable[[str], None]) -> None:
    """Have tuners of the class `tuner` not load a search that an earlier process of the job with this `uid` began.

    They load what this process or something else than the job has left.
    """
    load, save = tuner.reload, tuner.save
    by_this_process: set[Path] = set()

    @functools.wraps(save)
    def saving(self: Any) -> None:
        save(self)
        mark = Path(self.project_dir) / MARK
        if "://" not in str(self.project_dir) and not getattr(self, "_loaded_from_others", False):
            by_this_process.add(mark.absolute())
            mark.write_text(uid)

    @functools.wraps(load)
    def loading(self: Any) -> None:
        mark = Path(self.project_dir) / MARK
        of_the_job = mark.is_file() and mark.read_text() == uid
        if of_the_job and mark.absolute() not in by_this_process:
            log(AGAIN)
            self._populate_initial_space()
            return
        self._loaded_from_others = not of_the_job
        load(self)

    tuner.save, tuner.reload = saving, loading
