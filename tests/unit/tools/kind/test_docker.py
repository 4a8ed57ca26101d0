# SPDX-License-Identifier: Apache-2.0
"""How Docker is started on a machine whose root lacks a capability."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tools.kind import docker


@pytest.mark.parametrize(("bounding", "lacks"), [("000001fffeffffff", True), ("000001ffffffffff", False)])
def test_the_bounding_set_says_whether_a_capability_can_be_had(bounding: str, lacks: bool) -> None:
    assert docker.lacks(docker.SYS_RESOURCE, f"Name:\tsh\nCapEff:\t0\nCapBnd:\t{bounding}\n") == lacks


@pytest.mark.parametrize("option", ["--bundle", "--process"])
def test_runc_reads_no_capability_that_root_lacks(option: str, tmp_path: Path) -> None:
    file = tmp_path / ("config.json" if option == "--bundle" else "process.json")
    wanted = ["CAP_SYS_RESOURCE", "CAP_CHOWN", "CAP_SYS_RESOURCE"]
    file.write_text(json.dumps({"bounding": wanted, "effective": wanted[1:]}, separators=(",", ":")))
    runc = tmp_path / "bin" / "runc"
    runc.parent.mkdir()
    runc.write_text('#!/bin/sh\necho "$@"\n')
    runc.chmod(0o755)
    named = str(tmp_path if option == "--bundle" else file)
    environment = {**os.environ, "PATH": f"{runc.parent}:{os.environ['PATH']}"}
    said = subprocess.check_output([docker.RUNTIME, "run", option, named, "x"], env=environment, text=True)
    assert said == f"run {option} {named} x\n"
    assert json.loads(file.read_text()) == {"bounding": ["CAP_CHOWN"], "effective": ["CAP_CHOWN"]}


def test_a_program_found_by_its_own_link_stays_linked(tmp_path: Path) -> None:
    """As in a shell whose PATH is the one that `make kind` printed."""
    program, path = tmp_path / "program", tmp_path / "kind"
    program.touch()
    for found in (program, path):
        docker.link(path, found)
    assert path.resolve() == program
