# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.program.working_directory: a task of a local run writes beside the others and reads the same files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dtjob_trainer.program import working_directory


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which dtjob was started."""
    directory = tmp_path / "project" / "scripts"
    directory.mkdir(parents=True)
    (tmp_path / "run-1").mkdir()
    (directory / "vocabulary.txt").write_text("words")
    (tmp_path / "project" / "data").mkdir()
    (tmp_path / "project" / "data" / "rows.csv").write_text("1,2")
    (tmp_path / "elsewhere.txt").write_text("far")
    monkeypatch.chdir(directory)
    return directory


def task(tmp_path: Path, **facts: Any) -> Any:
    log = tmp_path / "run-1" / "logs" / "last.json"
    given = {"id": "worker-0", "parent": 1, "termination_log": str(log), "is_chief": False, **facts}
    return SimpleNamespace(**given)


def test_files_are_read_from_the_shared_directory_and_those_beside_it(tmp_path: Path, shared: Path) -> None:
    """Also if the list of them was not written to its end, and so is made again."""
    (tmp_path / "run-1" / working_directory.LISTING.format(run=1)).write_text('{"/work')
    working_directory.enter_own(task(tmp_path))
    assert Path.cwd() != shared
    assert Path("vocabulary.txt").read_text() == "words"
    assert Path("../data/rows.csv").read_text() == "1,2"
    assert Path("../../elsewhere.txt").read_text() == "far"
    assert Path("../scripts/vocabulary.txt").read_text() == "words"


def test_created_files_lie_in_the_tasks_own_directory_and_stay_for_its_next_process(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_directory.enter_own(task(tmp_path))
    Path("made").mkdir()
    Path("model.keras").write_text("a model")
    Path("vocabulary.txt").unlink()
    Path("vocabulary.txt").write_text("own words")
    assert not (shared / "made").exists()
    assert not (shared / "model.keras").exists()
    own = Path.cwd()
    monkeypatch.chdir(shared)
    working_directory.enter_own(task(tmp_path))
    assert Path.cwd() == own
    assert Path("made").is_dir()
    assert Path("model.keras").read_text() == "a model"
    assert Path("vocabulary.txt").read_text() == "own words"
    assert (shared / "vocabulary.txt").read_text() == "words"


def test_a_file_that_the_user_adds_is_there_in_the_next_dtjob_run(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_directory.enter_own(task(tmp_path))
    monkeypatch.chdir(shared)
    (shared / "data.csv").write_text("1,2")
    working_directory.enter_own(task(tmp_path))
    assert not Path("data.csv").exists()
    monkeypatch.chdir(shared)
    working_directory.enter_own(task(tmp_path, parent=2))
    assert Path("data.csv").read_text() == "1,2"


@pytest.mark.parametrize("facts", [{"is_chief": True}, {"parent": None}, {"termination_log": ""}])
def test_the_chief_and_pods_stay_where_they_are(tmp_path: Path, shared: Path, facts: dict[str, Any]) -> None:
    working_directory.enter_own(task(tmp_path, **facts))
    assert Path.cwd() == shared


def test_a_directory_of_many_files_is_shared(tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_directory, "MOST_LINKS", 1)
    (shared / "another.txt").touch()
    working_directory.enter_own(task(tmp_path))
    assert Path.cwd() == shared


def test_a_task_that_starts_again_finds_what_there_was_before_the_first_start(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    working_directory.enter_own(task(tmp_path, is_chief=True))
    Path("checkpoints").mkdir()
    monkeypatch.chdir(shared)
    working_directory.enter_own(task(tmp_path))
    assert Path("vocabulary.txt").exists()
    assert not Path("checkpoints").exists()
