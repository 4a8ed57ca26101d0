# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.made_directories: a program that runs again makes the directories that it has made before."""

# ruff: noqa: PTH102

import errno
import fcntl
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.program import made_directories

MKDIR = os.mkdir


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have `os.mkdir` be that of a new process of a job."""

    def start(*, runs_again: bool = False, record: Path = tmp_path / "record") -> None:
        monkeypatch.setattr(os, "mkdir", made_directories.taking(MKDIR, record, runs_again=runs_again))

    monkeypatch.chdir(tmp_path)
    start()
    return start


@pytest.mark.parametrize(
    "make",
    [os.mkdir, lambda path: os.mkdir(path.encode()), os.makedirs, lambda path: Path(path).mkdir()],
    ids=["os.mkdir", "of bytes", "os.makedirs", "Path.mkdir"],
)
def test_a_directory_that_a_process_before_has_made_is_taken(
    tmp_path: Path, process: Callable[..., None], make: Callable[[Any], None]
) -> None:
    make = (lambda path: os.mkdir(path)) if make is MKDIR else make
    make("training")
    (tmp_path / "training" / "file").touch()
    process(runs_again=True)
    make("training")
    assert (tmp_path / "training" / "file").exists()


def test_a_process_that_makes_a_directory_twice_fails(process: Callable[..., None]) -> None:
    os.mkdir("training")
    with pytest.raises(FileExistsError):
        os.mkdir("training")
    process()
    os.mkdir("training")
    with pytest.raises(FileExistsError):
        os.mkdir("training")


def test_a_directory_from_before_the_job_is_not_taken(tmp_path: Path, process: Callable[..., None]) -> None:
    """So that a script finds the next name that is free, and writes over nothing."""
    MKDIR("run-1")
    with pytest.raises(FileExistsError) as first:
        os.mkdir("run-1")
    assert str(first.value) == "[Errno 17] File exists: 'run-1'"
    process(runs_again=True)
    with pytest.raises(FileExistsError, match=r"write os.makedirs\(path, exist_ok=True\): 'run-1'") as again:
        os.mkdir("run-1")
    assert again.value.errno == errno.EEXIST


def test_a_directory_without_a_record_is_made(tmp_path: Path, process: Callable[..., None]) -> None:
    process(record=tmp_path / "missing" / "record")
    os.mkdir("training")
    with pytest.raises(FileExistsError):
        os.mkdir("training")


def test_a_child_that_was_forked_holds_no_lock(tmp_path: Path, process: Callable[..., None]) -> None:
    record = tmp_path / "record"
    process(record=record)
    with made_directories._opened(record):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        with record.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_directory_is_made_where_files_cannot_be_locked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, process: Callable[..., None]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(made_directories.fcntl, "flock", refuse)
    os.mkdir("training")
    assert (tmp_path / "training").is_dir()


def test_tasks_of_a_local_run_have_one_record_and_containers_their_own() -> None:
    local: Any = SimpleNamespace(parent=7, termination_log="/work/job/run-1/last/worker-0.json")
    pod: Any = SimpleNamespace(parent=None, termination_log="/dev/termination-log")
    assert made_directories.record_of(local) == Path("/work/job/run-1") / made_directories.NAME
    assert made_directories.record_of(pod).name == made_directories.NAME
    assert not made_directories.record_of(pod).is_relative_to("/dev")
