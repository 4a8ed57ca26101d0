# SPDX-License-Identifier: Apache-2.0
"""A script saves its model in every task: files are whole at any time, also where tasks share a directory."""

from pathlib import Path

from tests.trainer.support.harness import Cluster


def test_a_file_that_all_tasks_save_to_is_always_whole(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": 2}, "saves_by_all.py") as run:
        run.start()
        run.expect_success()
        assert all("saved" in run[task].output() for task in run.tasks)


def test_a_directory_that_all_tasks_export_to_is_always_of_one_task(tmp_path: Path) -> None:
    with Cluster(tmp_path, "MultiWorkerMirrored", {"worker": 2}, "exports_by_all.py") as run:
        run.start()
        run.expect_success()
        assert all("exported" in run[task].output() for task in run.tasks)
    [notes] = tmp_path.rglob("notes.txt")
    assert notes.read_text() == "of the user"
    assert not list(tmp_path.rglob(".worker-*-exported")), "each task removes its own at its end"
