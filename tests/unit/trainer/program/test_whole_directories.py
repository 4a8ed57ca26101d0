# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.whole_directories: directories of saved models are replaced as a whole."""

import errno
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

directories = pytest.importorskip("dtjob_trainer.program.whole_directories")


def save(text: str, export_dir: str, debug: bool = False) -> None:
    Path(export_dir, "variables").mkdir(parents=True)
    for name in ("saved_model.pb", "variables/variables.index"):
        Path(export_dir, name).write_text(text)
    if debug:
        Path(export_dir, "debug").mkdir()
        Path(export_dir, "debug", "info").write_text(text)


def read(export_dir: str) -> set[str]:
    return {Path(export_dir, name).read_text() for name in ("saved_model.pb", "variables/variables.index")}


def place(export_dir: str) -> str:
    return export_dir


@pytest.fixture(params=["in one go", "in turn"])
def task(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A task on a file system that exchanges names, and on one that does not."""
    if request.param == "in turn":
        monkeypatch.setattr(directories, "_exchange_names", directories._exchange_in_turn)
    return directories._Directories("chief-0")


def saving(task: Any) -> Callable[..., None]:
    written: Callable[..., None] = task.writing(save, "export_dir")
    return written


def names(path: Path) -> set[str]:
    return {each.name for each in path.iterdir()}


def test_a_save_replaces_the_model_and_keeps_the_files_of_the_user(task: Any, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    path.mkdir(mode=0o2775)
    path.chmod(0o2775)
    (path / "notes.txt").write_text("mine")
    for text in ("one", "two", "three"):
        saving(task)(text, str(path), debug=True)
        assert read(str(path)) == {text}
        assert (path / "debug" / "info").read_text() == text
    assert (path / "notes.txt").read_text() == "mine"
    assert path.stat().st_mode & 0o7777 == 0o2775
    assert names(tmp_path) == {"exported"}


def test_a_model_is_of_one_task_while_others_save(task: Any, tmp_path: Path) -> None:
    path, over = tmp_path / "exported", threading.Event()
    other = saving(directories._Directories("worker-1"))

    def save_again() -> None:
        while not over.is_set():
            other("other", str(path))

    saver = threading.Thread(target=save_again)
    saver.start()
    try:
        for _ in range(100):
            saving(task)("own", str(path))
            assert len(task.reading(read, "export_dir")(str(path))) == 1
    finally:
        over.set()
        saver.join()
    assert names(tmp_path) == {"exported"}


def test_a_model_that_is_replaced_while_it_is_linked_is_read_whole(
    task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "exported"
    saving(task)("one", str(path))
    copy, replacements = shutil.copytree, ["two"]

    def replaced_meanwhile(source: Any, *how: Any, **named: Any) -> None:
        text = replacements.pop() if replacements else None
        if text:
            (path / "saved_model.pb").unlink()  # another task has exchanged the directory, and removes this one
        copy(source, *how, **named)
        if text:
            shutil.rmtree(path)
            save(text, str(path))  # the file system may give it the number of the directory that was removed

    monkeypatch.setattr(shutil, "copytree", replaced_meanwhile)
    assert task.reading(read, "export_dir")(str(path)) == {"two"}


@pytest.mark.parametrize("left", ["new", "away"])
def test_a_save_after_a_kill_brings_back_what_the_user_had(task: Any, tmp_path: Path, left: str) -> None:
    path, new = tmp_path / "exported", tmp_path / ".chief-0-new-exported"
    found = new if left == "new" else directories._away(new)
    save("old", str(found))
    (found / "notes.txt").write_text("mine")
    if left == "new":
        save("killed", str(path))
    saving(task)("after", str(path))
    assert read(str(path)) == {"after"}
    assert (path / "notes.txt").read_text() == "mine"
    assert names(tmp_path) == {"exported"}


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM])
def test_a_directory_that_cannot_be_renamed_is_written_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "no")

    path = tmp_path / "exported"
    save("old", str(path))
    monkeypatch.setattr(directories, "_exchange_names", refuse)
    saving(directories._Directories("chief-0"))("new", str(path))
    assert read(str(path)) == {"new"}
    assert names(tmp_path) == {"exported"}


def test_a_model_is_read_from_links_and_one_with_assets_where_it_is(task: Any, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    saving(task)("one", str(path))
    assert task.reading(place, "export_dir")(str(path)) != str(path)
    (path / "assets").mkdir()
    (path / "assets" / "vocabulary.txt").write_text("a")
    assert task.reading(place, "export_dir")(str(path)) == str(path)


def test_a_file_at_the_path_is_left_to_tensorflow(task: Any, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    path.write_text("a file")
    with pytest.raises(OSError, match="exported"):
        saving(task)("one", str(path))
    assert path.read_text() == "a file"
