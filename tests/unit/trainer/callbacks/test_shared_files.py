# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.callbacks.shared_files: which tasks write the files of callbacks."""

from pathlib import Path

import pytest

from dtjob_trainer.callbacks import shared_files
from dtjob_trainer.callbacks.shared_files import writes_here
from tests.unit.trainer.tasks import Tasks


def write(*paths: list[str]) -> list[bool]:
    """Which of the tasks write, if these are the paths of each."""
    members = [f"worker-{index}" for index in range(len(paths))]
    return Tasks(members).run(lambda group: writes_here(group, paths[group.index]))


@pytest.fixture
def two(tmp_path: Path) -> list[str]:
    for name in ("chief", "worker"):
        (tmp_path / name).mkdir()
    return [str(tmp_path / name / "logs" / "best.keras") for name in ("chief", "worker")]


def test_the_chief_alone_writes_where_all_see_its_files(two: list[str], tmp_path: Path) -> None:
    assert write(*[[two[0]]] * 3) == [True, False, False]
    assert not list(tmp_path.rglob(".dtjob-*"))


def test_each_task_writes_where_each_has_a_directory_of_its_own(two: list[str]) -> None:
    assert write(*([path] for path in two)) == [True, True]


def test_each_task_writes_where_the_same_path_is_another_directory(
    two: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtjob_trainer.callbacks.shared_files._sees", lambda path, token: False)
    assert write([two[0]], [two[0]]) == [True, True]


def test_each_task_writes_where_it_works_in_a_directory_below_that_of_the_chief(
    two: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under `dtjob run`, whose working directories of tasks are below `.dtjob`."""
    below, sees = tmp_path / "chief" / ".dtjob" / "worker-1", shared_files._sees
    below.mkdir(parents=True)
    monkeypatch.setattr(shared_files, "_sees", lambda path, token: sees(str(below / "logs" / "best.keras"), token))
    assert write([two[0]], [two[0]]) == [True, True]


def test_nothing_is_compared_where_no_task_has_a_path(two: list[str]) -> None:
    assert write([], []) == [True, False]
    assert write(*[["gs://bucket/best.keras"]] * 2) == [True, False]


def test_callbacks_of_the_chief_alone_leave_the_others_nothing_to_write(two: list[str]) -> None:
    assert write([two[0]], [])[0]
