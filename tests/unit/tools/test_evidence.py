# SPDX-License-Identifier: Apache-2.0
"""How many folders of failed tests stay; what is in them is watched in tests/e2e."""

import os
from pathlib import Path

import pytest

from tests.e2e.support import evidence


def test_the_newest_folders_stay(tmp_path: Path) -> None:
    for age in range(5):
        folder = tmp_path / f"test-{age}"
        folder.mkdir()
        (folder / "events.txt").write_text("x")
        os.utime(folder, (1000 - age, 1000 - age))
    evidence.prune(tmp_path, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test-0", "test-1"]


def test_the_place_may_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTJOB_E2E_ARTIFACTS", str(tmp_path))
    assert evidence.folder() == tmp_path
    monkeypatch.delenv("DTJOB_E2E_ARTIFACTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert evidence.folder() == tmp_path / "dtjob" / "e2e-failures"
