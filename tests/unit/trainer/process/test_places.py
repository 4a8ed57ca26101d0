# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.places: which files outlive the pod."""

from pathlib import Path

import pytest

from dtjob_trainer.process import places


def test_a_path_on_another_file_system_is_on_a_volume() -> None:
    assert places.is_on_volume(Path("/proc/self/not/there"))
    assert not places.is_on_volume(Path("/not-there/model.keras"))


def test_a_relative_path_is_that_of_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/proc")
    assert places.is_on_volume(Path("model.keras"))


def test_files_below_the_temporary_directory_are_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places.tempfile, "gettempdir", lambda: str(tmp_path))
    assert places.is_temporary(tmp_path / "run" / "model.keras")
    assert not places.is_temporary(tmp_path.parent / "model.keras")
