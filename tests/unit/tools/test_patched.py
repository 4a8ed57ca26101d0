# SPDX-License-Identifier: Apache-2.0
"""A module with a few files more: the copy, and the go.mod that names it. A real build is `make integrations`."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tools import binaries, patched
from tools.programs import GANGS, MODULES, TOOLS


def test_the_copy_has_what_is_added_and_can_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, module, work = tmp_path / "source", tmp_path / "module", tmp_path / "work"
    (source / "pkg").mkdir(parents=True)
    (source / "pkg" / "there.go").write_text("package pkg\n")
    (module / "added" / "pkg").mkdir(parents=True)
    (module / "added" / "pkg" / "more.go").write_text("package pkg // more\n")
    (module / "go.mod").write_text("module x\n\nreplace (\n\ta.b/c => a.b/c v1.0.0\n)\n")
    (module / "go.sum").write_text("sums\n")
    (source / "pkg").chmod(0o555)
    go = tmp_path / "go"
    go.write_text(f"#!/bin/sh\necho '{json.dumps({'Dir': str(source)})}'\n")
    go.chmod(0o755)
    work.mkdir()
    for _ in range(2):  # the second build finds the first one's copy
        made = patched.modfile(str(go), module, "a.b/c", work, dict(os.environ))
    assert made.read_text() == f"module x\n\nreplace (\n\ta.b/c => {work / 'a.b-c'}\n)\n"
    assert sorted(path.name for path in (work / "a.b-c" / "pkg").iterdir()) == ["more.go", "there.go"]
    assert (work / "go.sum").read_text() == "sums\n"


def test_a_go_mod_that_says_nothing_of_the_module_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"has no line `a.b/c => ...` in its replace block; add it"):
        patched.with_copy("module x\n", "a.b/c", Path("copy"))


def test_a_module_that_cannot_be_had_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    go.chmod(0o755)
    with pytest.raises(binaries.BinariesError, match=r"(?s)vc-scheduler: volcano.sh/apis cannot be had:.*no such mod"):
        binaries._patch(str(go), TOOLS["vc-scheduler"], dict(os.environ))


@pytest.mark.parametrize("name", GANGS)
def test_each_module_pins_its_program(name: str) -> None:
    tool = TOOLS[name]
    assert tool.version.startswith("v")
    text = (tool.directory / "go.mod").read_text()
    assert tool.package in text
    if tool.patched:
        assert str(tool.directory) in patched.with_copy(text, tool.patched, tool.directory)


def test_binaries_runs_as_a_program_too() -> None:
    done = subprocess.run(
        ["python3", "tools/binaries.py", "none"], capture_output=True, text=True, cwd=MODULES.parents[1]
    )
    assert done.returncode == 2
    assert "unknown: none" in done.stderr
