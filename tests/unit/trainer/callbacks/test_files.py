# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.callbacks.files: files of a ModelCheckpoint are there again for a new process; who writes them."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.unit.trainer.tasks import Tasks

keras = pytest.importorskip("keras")
state = pytest.importorskip("dtjob_trainer.callbacks.keeping")
files = pytest.importorskip("dtjob_trainer.callbacks.files")


def checkpoint(path: Path) -> Any:
    return keras.callbacks.ModelCheckpoint(path)


def after_restart(callback: Any, anew: Any) -> Any:
    state.begin(anew)
    state.restore(anew, state.decode(state.encode(state.kept(callback)[0])), None)
    return anew


def test_restored_files_are_written_below_the_new_path(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    first = checkpoint(tmp_path / "first" / "ckpt-{epoch:02d}" / "of-{loss:.2f}.keras")
    (tmp_path / "first" / "ckpt-00").mkdir()
    old = tmp_path / "first" / "ckpt-00" / "of-0.9.keras"
    old.write_text("of a run before")
    state.begin(first)
    for epoch in (1, 2):
        (tmp_path / "first" / f"ckpt-0{epoch}").mkdir()
        (tmp_path / "first" / f"ckpt-0{epoch}" / f"of-0.{epoch}.keras").write_text(str(epoch))
    (tmp_path / "first" / "ckpt-02" / "other.txt").write_text("not of the callback")
    second = after_restart(first, checkpoint(tmp_path / "second" / "ckpt-{epoch:02d}" / "of-{loss:.2f}.keras"))
    found = {str(path.relative_to(tmp_path / "second")) for path in (tmp_path / "second").rglob("*.*")}
    assert found == {"ckpt-01/of-0.1.keras", "ckpt-02/of-0.2.keras"}
    assert files.written(second).keys() == found
    assert (tmp_path / "second" / "ckpt-02" / "of-0.2.keras").read_text() == "2"


def test_a_file_that_a_later_fit_has_changed_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "best.keras"
    callback = checkpoint(path)
    state.begin(callback)
    path.write_text("of this fit")
    kept = state.encode(state.kept(callback)[0])
    path.write_text("of a later fit")
    anew = checkpoint(path)
    state.begin(anew)
    state.restore(anew, state.decode(kept), None)
    assert path.read_text() == "of this fit"
    assert files.written(anew).keys() == {"best.keras"}


def test_files_of_tensorflows_own_formats_are_kept_together(tmp_path: Path) -> None:
    first = checkpoint(tmp_path / "first.keras")
    first.filepath = str(tmp_path / "a" / "cp")  # as tf_keras lets it be
    state.begin(first)
    (tmp_path / "a" / "cp" / "variables").mkdir(parents=True)
    for name in ("cp.index", "cp.data-00000-of-00001", "checkpoint", "cp/saved_model.pb", "cp/variables/v.index"):
        (tmp_path / "a" / name).write_text(name)
    assert set(files.written(first)) == {
        *("cp.index", "cp.data-00000-of-00001", "checkpoint"),
        *("cp/saved_model.pb", "cp/variables/v.index"),
    }


def test_files_that_are_too_large_are_left_out_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    callback = checkpoint(tmp_path / "best.keras")
    state.begin(callback)
    assert files.left_out(callback) is None
    os.truncate(os.open(tmp_path / "best.keras", os.O_CREAT | os.O_WRONLY), files.MOST_BYTES + 1)
    assert files.written(callback) == {}
    monkeypatch.setattr(files.places, "is_on_volume", lambda path: False)
    assert "write them to a volume, and not to" in files.left_out(callback)
    monkeypatch.setattr(files.places, "is_on_volume", lambda path: True)
    assert files.left_out(callback) is None


def test_weights_that_kerastuner_saves_in_a_fit_are_there_again(tmp_path: Path) -> None:
    """Its class is not Keras's own, and Hyperband loads the weights of an earlier trial."""
    kind = type("SaveBestEpoch", (keras.callbacks.Callback,), {"__module__": "keras_tuner.src.engine.tuner_utils"})

    def saves() -> Any:
        callback = kind()
        callback.filepath = str(tmp_path / "trial_0001" / "checkpoint.weights.h5")
        return callback

    first = saves()
    state.begin(first)
    Path(first.filepath).parent.mkdir()
    Path(first.filepath).write_text("of trial 1")
    kept = state.encode(state.kept(first)[0])
    Path(first.filepath).unlink()
    anew = saves()
    state.begin(anew)
    state.restore(anew, state.decode(kept), None)
    assert Path(anew.filepath).read_text() == "of trial 1"


def write(*paths: list[str]) -> list[bool]:
    """Which of the tasks write, if these are the paths of each."""
    members = [f"worker-{index}" for index in range(len(paths))]
    return Tasks(members).run(lambda group: files.writes_here(group, paths[group.index]))


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


def test_each_task_writes_where_it_works_in_a_directory_below_that_of_the_chief(
    two: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under `dtjob run`, whose working directories of tasks are below `.dtjob`."""
    below, sees = tmp_path / "chief" / ".dtjob" / "worker-1", files._sees
    below.mkdir(parents=True)
    monkeypatch.setattr(files, "_sees", lambda path, token: sees(str(below / "logs" / "best.keras"), token))
    assert write([two[0]], [two[0]]) == [True, True]


def test_nothing_is_compared_where_no_task_has_a_path(two: list[str]) -> None:
    assert write([], []) == [True, False]
    assert write(*[["gs://bucket/best.keras"]] * 2) == [True, False]
