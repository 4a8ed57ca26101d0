# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.own_directories: SavedModels of tasks that are not the chief lie apart."""

from pathlib import Path
from typing import Any

import pytest

directories = pytest.importorskip("dtjob_trainer.program.own_directories")


def save(text: str, export_dir: str) -> None:
    Path(export_dir).mkdir(exist_ok=True)
    Path(export_dir, "saved_model.pb").write_text(text)


def read(export_dir: str) -> str:
    return Path(export_dir, "saved_model.pb").read_text()


@pytest.fixture
def task() -> Any:
    return directories.OwnDirectories("worker-1")


def test_a_task_reads_what_it_has_written_and_leaves_the_chiefs_alone(task: Any, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    save("chief", str(path))
    task.writing(save, "export_dir")("own", export_dir=path)
    assert task.reading(read, "export_dir")(path) == "own"
    assert read(str(path)) == "chief"
    assert {each.name for each in tmp_path.iterdir()} == {"exported", ".worker-1-exported"}


def test_a_task_reads_where_the_program_says_what_it_has_not_written(task: Any, tmp_path: Path) -> None:
    save("chief", str(tmp_path / "exported"))
    save("of an earlier run", str(tmp_path / ".worker-1-exported"))
    assert task.reading(read, "export_dir")(str(tmp_path / "exported")) == "chief"


@pytest.mark.parametrize("name", [".worker-1-exported", ".saving-exported"])
def test_a_directory_that_has_been_chosen_for_the_task_is_written_as_it_is_named(
    task: Any, tmp_path: Path, name: str
) -> None:
    task.writing(save, "export_dir")("own", str(tmp_path / name))
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_uri_is_left_as_it_is(task: Any) -> None:
    assert task.writing(lambda export_dir: export_dir, "export_dir")("gs://bucket/exported") == "gs://bucket/exported"
