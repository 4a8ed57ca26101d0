# SPDX-License-Identifier: Apache-2.0
"""A program that comes from a ConfigMap, with its requirements, under its supervisor."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from dtjob.local.processes.addresses import free_ports
from tests.trainer.support.harness import ROOT

PROGRAM = """
from pathlib import Path
import helper
Path("written").write_text(helper.WORD)
print("ran in", Path.cwd(), flush=True)
"""


def supervised(tmp_path: Path, requirements: str) -> subprocess.CompletedProcess[str]:
    """`python3 -m dtjob_trainer train.py` as in a container."""
    mounted, temporary, ports = tmp_path / "mount", tmp_path / "tmp", free_ports(2)
    for directory in (mounted, temporary):
        directory.mkdir()
    (tmp_path / "helper.py").write_text("WORD = 'from the archive'")
    with tarfile.open(mounted / "source.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "helper.py", "helper.py")
    (mounted / "train.py").write_text(PROGRAM)
    (mounted / "requirements.txt").write_text(requirements)
    (tmp_path / "cluster.json").write_text(json.dumps({"chief": [f"127.0.0.1:{ports[0]}"]}))
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "trainer_image"),
        "TMPDIR": str(temporary),
        "PIP_NO_INDEX": "1",
        "DTJOB_NAME": "test",
        "DTJOB_NAMESPACE": "default",
        "DTJOB_UID": "u",
        "DTJOB_ROLE": "chief",
        "DTJOB_INDEX": "0",
        "DTJOB_ATTEMPT": "0",
        "DTJOB_STRATEGY": "Default",
        "DTJOB_CLUSTER_FILE": str(tmp_path / "cluster.json"),
        "DTJOB_CLUSTER_HASH": "x",
        "DTJOB_STATUS_PORT": str(ports[0]),
        "DTJOB_RENDEZVOUS_ADDRESS": f"127.0.0.1:{ports[1]}",
        "DTJOB_TERMINATION_LOG": str(tmp_path / "termination"),
        "DTJOB_SOURCE": str(mounted),
        "DTJOB_REQUIREMENTS": "requirements.txt",
    }
    command = [sys.executable, "-m", "dtjob_trainer", "train.py"]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=240)


def test_files_are_the_working_directory_and_requirements_are_installed_first(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    done = supervised(tmp_path, "# nothing is missing\n")
    assert done.returncode == 0, done.stdout + done.stderr
    directory = tmp_path / "tmp" / "dtjob-source"
    assert f"ran in {directory}" in done.stdout
    assert (directory / "written").read_text() == "from the archive"
    assert (tmp_path / "tmp" / "dtjob-requirements" / "installed").exists()


def test_a_requirement_that_cannot_be_installed_is_a_failure_of_the_program(tmp_path: Path) -> None:
    done = supervised(tmp_path, "no-such-package-of-dtjob==1\n")
    assert done.returncode == 1, done.stdout + done.stderr
    (last,) = [line for line in (done.stdout + done.stderr).splitlines() if "stepped=false" in line]
    assert 'exception="RequirementsError: pip could not install requirements.txt: ' in last
    assert "No matching distribution found for no-such-package-of-dtjob==1" in last
