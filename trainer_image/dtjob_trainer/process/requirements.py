# SPDX-License-Identifier: Apache-2.0
"""program.requirements: packages that pip installs before the program starts, once in a container."""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, MutableMapping
from pathlib import Path

VARIABLE = "DTJOB_REQUIREMENTS"
DIRECTORY = Path(tempfile.gettempdir()) / "dtjob-requirements"
"""Where the packages are installed. The packages of the image stay as they are."""
_DONE = "installed"
_OPTIONS = (
    "--no-input",
    "--disable-pip-version-check",
    "--no-cache-dir",
    "--progress-bar=off",
    "--no-warn-script-location",
)
_OF_ENSUREPIP = (
    "import ensurepip, glob, os, runpy, sys; "
    "wheels = glob.glob(os.path.join(os.path.dirname(ensurepip.__file__), '_bundled', 'pip-*.whl')); "
    "sys.path.insert(0, wheels[0]); runpy.run_module('pip', run_name='__main__')"
)
"""Runs the pip that comes with Python, where none is installed."""


class RequirementsError(Exception):
    """The packages cannot be installed. The message has the last line of pip."""


def install(environ: MutableMapping[str, str], log: Callable[[str], None], directory: Path = DIRECTORY) -> None:
    """Install what the image lacks of the requirements, and let Python find it. Nothing if there are none.

    Raises RequirementsError.
    """
    name = environ.get(VARIABLE)
    if not name:
        return
    if not (directory / _DONE).exists():
        if not Path(name).is_file():
            raise RequirementsError(f"program.requirements {name!r} is not a file in {Path.cwd()}")
        log(f"installing {name}")
        _run([*_pip(), "install", *_OPTIONS, "--prefix", str(directory), "-r", name], name)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _DONE).touch()
    _find_in(directory, environ)


def _pip() -> list[str]:
    """The command of pip: of this Python, else the one that comes with it."""
    asked = subprocess.run([sys.executable, "-c", "import pip"], capture_output=True, check=False)
    return [sys.executable, *(["-m", "pip"] if asked.returncode == 0 else ["-c", _OF_ENSUREPIP])]


def _run(command: list[str], name: str) -> None:
    """Run pip, whose output goes to the log. Raises RequirementsError with its last line."""
    last = ""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            last = line.strip() or last
    if process.returncode:
        raise RequirementsError(f"pip could not install {name}: {last or f'exit code {process.returncode}'}")


def _find_in(directory: Path, environ: MutableMapping[str, str]) -> None:
    """Let this process and those that it starts import the packages first."""
    paths = {
        sysconfig.get_path(kind, vars={"base": str(directory), "platbase": str(directory)})
        for kind in ("purelib", "platlib")
    }
    found = [path for path in sorted(paths) if path not in sys.path]
    sys.path[:0] = found
    if found:
        environ["PYTHONPATH"] = os.pathsep.join([*found, *filter(None, [environ.get("PYTHONPATH")])])
