# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.checkpoint.directory: storage that is away for a moment makes no checkpoint seem gone, or torn."""

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path
from stat import S_ISDIR
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.python.lib.io import file_io

from dtjob_trainer.checkpoint import directory
from dtjob_trainer.checkpoint.directory import DATA_SUFFIX, clear_half_written, make_writable, steps_in, write_text
from dtjob_trainer.errors import CheckpointError

WHOLE = {f"ckpt-{step}{part}" for step in (5, 10) for part in (DATA_SUFFIX, ".index")}
MOST_LOOKS = 12
"""More than any of these functions takes."""


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    for name in WHOLE:
        (tmp_path / name).touch()
    return tmp_path


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def fails_at(number: int, call: Callable[..., Any], error: Exception) -> Callable[..., Any]:
    """`call`, of which that one raises `error` (0 is the first)."""
    left = number

    def counted(*arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left == -1:
            raise error
        return call(*arguments)

    return counted


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("look", range(MOST_LOOKS))
def test_no_look_that_fails_costs_a_checkpoint(
    checkpoints: Path, monkeypatch: pytest.MonkeyPatch, scheme: str, look: int
) -> None:
    (checkpoints / "ckpt-7.index").touch()
    torn = checkpoints / "ckpt-15_temp"
    torn.mkdir()
    (torn / f"ckpt{DATA_SUFFIX}").touch()
    with monkeypatch.context() as patch:
        away = tf.errors.AbortedError(None, None, "Stale file handle")
        for name in ("IsDirectory", "Stat", "GetChildren", "FileExists"):
            patch.setattr(file_io._pywrap_file_io, name, fails_at(look, getattr(file_io._pywrap_file_io, name), away))
        patch.setattr(Path, "iterdir", fails_at(look, Path.iterdir, OSError(errno.EIO, "Input/output error")))
        for act in (clear_half_written, steps_in):
            with contextlib.suppress(OSError, tf.errors.OpError, CheckpointError):
                assert act(f"{scheme}{checkpoints}") in (None, [5, 10]), "an error was read as absence"
    assert names_in(checkpoints) >= WHOLE
    clear_half_written(f"{scheme}{checkpoints}")
    assert names_in(checkpoints) == WHOLE
    assert steps_in(f"{scheme}{checkpoints}") == [5, 10]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_directory_that_is_not_there_has_none(tmp_path: Path, scheme: str) -> None:
    assert steps_in(f"{scheme}{tmp_path}/none") == []


ONE = [DATA_SUFFIX, ".index"]
SEVERAL = [".data-00000-of-00002", ".data-00001-of-00002", ".index"]


@pytest.mark.parametrize(("ends", "named"), [(ONE, 0), (ONE, 1), (SEVERAL, 0), (SEVERAL, 1), (SEVERAL, 2)])
def test_a_save_that_was_all_there_is_named_from_where_a_kill_came(
    checkpoints: Path, ends: list[str], named: int
) -> None:
    """So many of its files had their names before the kill."""
    (checkpoints / "ckpt-15_temp").mkdir()
    for number, end in enumerate(ends):
        (checkpoints / (f"ckpt-15{end}" if number < named else f"ckpt-15_temp/ckpt{end}")).touch()
    clear_half_written(str(checkpoints))
    assert names_in(checkpoints) == WHOLE | {f"ckpt-15{end}" for end in ends}


def test_a_checkpoint_in_several_data_files_is_whole_if_all_are_there(checkpoints: Path) -> None:
    several = {"ckpt-15.index", "ckpt-15.data-00000-of-00002", "ckpt-15.data-00001-of-00002"}
    for name in several | {"ckpt-7.data-00000-of-00002"}:
        (checkpoints / name).touch()
    assert steps_in(str(checkpoints)) == [5, 10, 15]
    clear_half_written(str(checkpoints))
    assert names_in(checkpoints) == WHOLE | several


def test_a_checkpoint_without_some_of_its_data_files_is_refused_and_left_alone(checkpoints: Path) -> None:
    before = WHOLE | {"ckpt-7.index", "ckpt-7.data-00000-of-00002"}
    for name in before:
        (checkpoints / name).touch()
    with pytest.raises(CheckpointError, match=r"ckpt-7 was not written by dtjob; choose another"):
        clear_half_written(str(checkpoints))
    assert names_in(checkpoints) == before


def test_storage_that_cannot_rename_is_found_out_before_the_first_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the driver that AWS has for S3."""

    def refuses(*_: Any, **__: Any) -> None:
        raise tf.errors.UnimplementedError(None, None, "Function not implemented")

    make_writable(str(tmp_path))
    assert names_in(tmp_path) == set()
    monkeypatch.setattr(directory.gfile, "rename", refuses)
    with pytest.raises(CheckpointError, match="cannot rename files: Function not implemented; choose one that can"):
        make_writable(str(tmp_path))


def cannot_flush_directories(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Let the system answer `code` for a directory: where it is opened if that is EACCES, else where it is flushed."""
    name, is_directory = (
        ("open", os.path.isdir) if code == errno.EACCES else ("fsync", lambda one: S_ISDIR(os.fstat(one).st_mode))
    )
    own = getattr(os, name)

    def call(what: Any, *arguments: Any) -> Any:
        if is_directory(what):
            raise OSError(code, os.strerror(code))
        return own(what, *arguments)

    monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EBADF, errno.EINVAL, errno.ENOTSUP], ids=errno.errorcode.get)
def test_storage_that_cannot_flush_directories_takes_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """EACCES: the directory above may be written to and not read."""
    cannot_flush_directories(monkeypatch, code)
    make_writable(f"{tmp_path}/job/checkpoints")
    write_text(f"{tmp_path}/job/checkpoints/DONE", "{}")
    assert names_in(tmp_path / "job/checkpoints") == {"DONE"}


def test_storage_whose_names_do_not_reach_the_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cannot_flush_directories(monkeypatch, errno.EIO)
    with pytest.raises(CheckpointError, match=rf"checkpoint.storage {tmp_path}/job cannot be written to: Input/output"):
        make_writable(f"{tmp_path}/job")
