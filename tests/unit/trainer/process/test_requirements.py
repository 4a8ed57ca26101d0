# SPDX-License-Identifier: Apache-2.0
"""program.requirements: pip installs what is missing, once, and its last line is the failure."""

import subprocess
import sys
from pathlib import Path

import pytest

from dtjob_trainer.process import requirements


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for pip: it appends its arguments to the file that is returned, and installs a module."""
    called, program = tmp_path / "called", tmp_path / "pip.py"
    program.write_text(
        "import sys, sysconfig, pathlib\n"
        f"open({str(called)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
        "base = sys.argv[sys.argv.index('--prefix') + 1]\n"
        "place = pathlib.Path(sysconfig.get_path('purelib', vars={'base': base}))\n"
        "place.mkdir(parents=True)\n"
        "(place / 'dtjob_test_package.py').write_text('VALUE = 1')\n"
    )
    monkeypatch.setattr(requirements, "_pip", lambda: [sys.executable, str(program)])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.txt").write_text("a-package\n")
    return called


def test_packages_are_installed_once_and_found(pip: Path, tmp_path: Path) -> None:
    environ = {requirements.VARIABLE: "requirements.txt"}
    for _ in range(2):
        requirements.install(environ, print, tmp_path / "packages")
    (call,) = pip.read_text().splitlines()
    assert call.endswith(f"--prefix {tmp_path / 'packages'} -r requirements.txt")
    import dtjob_test_package  # type: ignore[import-not-found]

    assert dtjob_test_package.VALUE == 1
    asked = [sys.executable, "-c", "import dtjob_test_package"]
    assert subprocess.run(asked, env=environ, check=False).returncode == 0


def test_without_requirements_nothing_runs(pip: Path) -> None:
    requirements.install({}, print)
    assert not pip.exists()


def test_a_file_that_is_missing_is_named(pip: Path) -> None:
    with pytest.raises(requirements.RequirementsError, match=r"'other.txt' is not a file in"):
        requirements.install({requirements.VARIABLE: "other.txt"}, print)


def test_the_last_line_of_pip_is_the_failure(pip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = "print('ERROR: one'); print('ERROR: No matching distribution'); print(); raise SystemExit(1)"
    monkeypatch.setattr(requirements, "_pip", lambda: [sys.executable, "-c", failing])
    with pytest.raises(requirements.RequirementsError) as error:
        requirements.install({requirements.VARIABLE: "requirements.txt"}, print, tmp_path / "packages")
    assert str(error.value) == "pip could not install requirements.txt: ERROR: No matching distribution"


def test_pip_is_found_or_comes_with_python() -> None:
    said = subprocess.run([*requirements._pip(), "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith("pip ")
    bundled = [sys.executable, "-c", requirements._OF_ENSUREPIP, "--version"]
    assert subprocess.run(bundled, capture_output=True, text=True, check=True).stdout.startswith("pip ")
