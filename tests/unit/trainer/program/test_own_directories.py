# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.own_directories: SavedModels of tasks that are not the chief lie apart."""

import subprocess
import sys
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


ENDS = """
import os, signal, sys, time
import tensorflow as tf
from dtjob_trainer.contract.task import Task
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.program import own_directories
task = Task("j", "ns", "uid", "worker", 1)
here = Runtime(task)
here.shutdown.install()
own_directories.keep_apart(here, task)
tf.saved_model.save(tf.Module(), "exported")
assert os.listdir() == [".worker-1-exported"], os.listdir()
if sys.argv[1] == "SIGTERM":
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
here.leave(starts_again=sys.argv[1] == "lost peer")
os._exit(143)
"""


@pytest.mark.parametrize("how", ["SIGTERM", "lost peer"])
def test_a_task_leaves_no_copy_however_its_process_ends(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", ENDS, how]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, list(tmp_path.iterdir())) == (143, []), ended.stderr
