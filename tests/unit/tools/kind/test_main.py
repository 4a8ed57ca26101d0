# SPDX-License-Identifier: Apache-2.0
"""What `make kind` asks of Docker and kind; no test here starts a cluster."""

import os
from pathlib import Path

import pytest

from tools import binaries
from tools.cluster import kind
from tools.kind import __main__ as main
from tools.kind import docker


def test_no_registry_is_asked_for_a_cluster_that_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question takes long if none answers."""
    for name in ("docker", "kind"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >>{tmp_path}/calls\necho {main.CLUSTER}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(docker, "weigh", lambda machines: None)
    monkeypatch.setattr(kind, "programs", lambda say: {"kind": tmp_path / "kind"})
    monkeypatch.setattr(binaries, "find", lambda names, say: {})
    assert main.up() == 0
    assert (tmp_path / "calls").read_text() == "docker info\nkind get clusters\n"
