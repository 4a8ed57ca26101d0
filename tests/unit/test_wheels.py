# SPDX-License-Identifier: Apache-2.0
"""What is in the wheels, and so in the images: every module of the source tree. A folder without `__init__.py` is no
package to setuptools, which leaves it out without a word."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
CODE = ("operator/dtjob", "trainer_image/dtjob_trainer")
NEEDED = ("pyproject.toml", "LICENSE", "README.md")


def wheels_files(project: Path, directory: Path) -> set[str]:
    """Build the project's wheel, without a network; the names of the files of its packages."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(directory)], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.returncode == 0, done.stdout.decode()
    (wheel,) = directory.glob("*.whl")
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


def copy_of(code: str, target: Path) -> Path:
    """The project that `code` belongs to, where setuptools may write beside it and finds no earlier build."""
    project = (ROOT / code).parent if code.startswith("trainer") else ROOT
    target.mkdir()
    for name in NEEDED:
        if (project / name).exists():
            shutil.copy2(project / name, target)
    inside = (ROOT / code).relative_to(project)
    shutil.copytree(ROOT / code, target / inside, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def modules(code: Path) -> set[str]:
    return {str(file.relative_to(code.parent)) for file in code.rglob("*.py")}


@pytest.mark.parametrize("code", CODE)
def test_a_wheel_has_every_module(code: str, tmp_path: Path) -> None:
    found = wheels_files(copy_of(code, tmp_path / "project"), tmp_path / "dist")
    assert sorted(modules(ROOT / code) - found) == [], "a folder of the source has no __init__.py"
    assert {name for name in found if name.endswith(".py")} == modules(ROOT / code)
