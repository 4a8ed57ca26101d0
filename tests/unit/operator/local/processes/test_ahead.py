# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob.local.processes import launcher
from dtjob.local.processes.ahead import launcher_ahead
from dtjob.local.processes.inherited import inherited

SHOW_WHAT_IS_IMPORTED = """
import sys
from dtjob.local.processes import ahead, launcher

class Shown:
    def __init__(self, environment):
        print(sorted(name for name in ("yaml", "dtjob.api.job", "dtjob.local.engine") if name in sys.modules))

    def close(self):
        print("closed")

ahead.Launcher = Shown
from dtjob.cli import main
sys.argv = ["dtjob", "run", sys.argv[1]]
main.main()
"""


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(launcher, "MODULE", "tests.unit.operator.local.processes.launcher_stand_in")
    file = tmp_path / "job.yaml"
    file.write_text("kind: Nothing")
    return file


def test_a_run_has_its_launcher_before_dtjob_imports_what_reads_a_manifest(manifest: Path):
    command = [sys.executable, "-c", SHOW_WHAT_IS_IMPORTED, str(manifest)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == "[]\nclosed\n", ended.stderr
    assert ended.returncode == 2
    assert ended.stderr.startswith("dtjob: ")


def test_the_launcher_started_ahead_has_the_environment_of_tasks_without_own_variables(manifest: Path):
    with launcher_ahead(manifest) as ahead:
        assert ahead is not None
        assert ahead.wait()
        assert ahead.environment == inherited(os.environ)


def test_a_launcher_started_ahead_ends_if_it_is_not_used(manifest: Path):
    with launcher_ahead(manifest) as ahead:
        assert ahead is not None
    assert not Path(f"/proc/{ahead.pid}").exists()


def test_no_launcher_is_started_ahead_without_a_manifest(tmp_path: Path):
    with launcher_ahead(tmp_path / "none.yaml") as ahead:
        assert ahead is None
