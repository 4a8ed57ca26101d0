# SPDX-License-Identifier: Apache-2.0
"""What a node needs from the system is named where it cannot be had."""

import os
from pathlib import Path

import pytest

from tools.node import packages


def test_without_root_there_is_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(packages.UnavailableError, match="needs Linux and root"):
        packages.ensure()


def test_without_apt_the_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(packages.UnavailableError, match=r"buildah, .*runc.* no apt-get"):
        packages.ensure()


def test_an_installation_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    apt = tmp_path / "apt-get"
    apt.write_text("#!/bin/sh\necho >&2 E: no network\nexit 100\n")
    apt.chmod(0o755)
    said: list[str] = []
    with pytest.raises(packages.UnavailableError, match=r"apt-get update of .* failed: E: no network"):
        packages.ensure(said.append)
    assert said[0].startswith("installing with apt-get: buildah")
