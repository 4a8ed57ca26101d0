# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.tuners: searches of KerasTuner, which is not installed here."""

from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.program import tuners


def process(uid: str) -> tuple[Any, list[str]]:
    """KerasTuner's class, as far as it matters, in a new process of the job with this uid; what that logs."""

    class Tuner:
        def __init__(self, directory: Path) -> None:
            self.project_dir, self.trials = str(directory), 0
            if (directory / "tuner0.json").exists():
                self.reload()
            else:
                self._populate_initial_space()

        def _populate_initial_space(self) -> None:
            self.populated = True

        def reload(self) -> None:
            self.trials = int(Path(self.project_dir, "tuner0.json").read_text())

        def save(self) -> None:
            Path(self.project_dir, "tuner0.json").write_text(str(self.trials))

        def search(self) -> None:
            self.trials += 1
            self.save()

    told: list[str] = []
    if uid:
        tuners.begin_anew(uid, told.append, Tuner)
    return Tuner, told


def test_a_search_begins_anew_in_the_next_process_of_the_job(tmp_path: Path) -> None:
    process("a")[0](tmp_path).search()
    tuner, told = process("a")
    again = tuner(tmp_path)
    assert (again.trials, again.populated, told) == (0, True, [tuners.AGAIN])
    again.search()
    assert tuner(tmp_path).trials == 1, "what this process has saved is loaded"


@pytest.mark.parametrize("uid", ["", "another"])
def test_a_search_of_something_else_than_the_job_is_loaded_in_each_process(tmp_path: Path, uid: str) -> None:
    process(uid)[0](tmp_path).search()
    for trials in (1, 2):
        tuner, told = process("a")
        loaded = tuner(tmp_path)
        assert (loaded.trials, told) == (trials, [])
        loaded.search()
