# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.callbacks.shared_files: which tasks write the files of callbacks."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dtjob_trainer.callbacks.shared_files import writes_here


class Tasks:
    """Several tasks in threads, which exchange numbers as those of a job do."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._barrier = threading.Barrier(number, timeout=10)
        self._rows: list[npt.NDArray[np.float64]] = [np.zeros(0)] * number

    def group(self, index: int) -> Any:
        outer = self

        class Group:
            tasks = outer.number

            def __init__(self) -> None:
                self.index = index

            def of_each(self, mine: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
                outer._rows[index] = mine
                outer._barrier.wait()
                table = np.stack(outer._rows)
                outer._barrier.wait()
                return table

        return Group()

    def write(self, paths: list[list[str]]) -> list[bool]:
        """Which of the tasks write, if these are the paths of each."""
        found = [False] * self.number

        def run(index: int) -> None:
            found[index] = writes_here(self.group(index), paths[index])

        threads = [threading.Thread(target=run, args=(index,)) for index in range(self.number)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    for name in ("chief", "worker"):
        (tmp_path / name).mkdir()
    return [str(tmp_path / name / "logs" / "best.keras") for name in ("chief", "worker")]


def test_the_chief_alone_writes_where_all_see_its_files(two: list[str], tmp_path: Path) -> None:
    assert Tasks(3).write([[two[0]]] * 3) == [True, False, False]
    assert not list(tmp_path.rglob(".dtjob-*"))


def test_each_task_writes_where_each_has_a_directory_of_its_own(two: list[str]) -> None:
    assert Tasks(2).write([[path] for path in two]) == [True, True]


def test_each_task_writes_where_the_same_path_is_another_directory(
    two: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtjob_trainer.callbacks.shared_files._sees", lambda path, token: False)
    assert Tasks(2).write([[two[0]], [two[0]]]) == [True, True]


def test_nothing_is_compared_where_no_task_has_a_path(two: list[str]) -> None:
    assert Tasks(2).write([[], []]) == [True, False]
    assert Tasks(2).write([["gs://bucket/best.keras"]] * 2) == [True, False]


def test_callbacks_of_the_chief_alone_leave_the_others_nothing_to_write(two: list[str]) -> None:
    assert Tasks(2).write([[two[0]], []])[0]
