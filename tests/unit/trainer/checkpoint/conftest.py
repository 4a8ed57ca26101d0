# SPDX-License-Identifier: Apache-2.0
"""What tests of this folder share."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that files had when they were brought to disk."""
    names: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        if not (path := Path(f"/proc/self/fd/{descriptor}").readlink()).is_dir():
            names.append(path.name)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return names
