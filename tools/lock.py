# SPDX-License-Identifier: Apache-2.0
"""Write constraints.txt anew: every package at the newest version that pyproject.toml allows.

    python -m tools.lock            # in a virtual environment of its own below build/; some minutes

Run all tests afterwards: the file says what they ran with.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
HEAD = """\
# What CI and `make` install: every package of the virtual environment at the version that the tests ran with.
# `make lock` writes it; pyproject.toml holds the ranges that users get. tensorflow is not installed here: the trainer's
# GPU image takes it in tensorflow_cpu's place.
"""
OWN = ("dtjob", "dtjob-trainer", "dtjob_trainer", "pip")


def locked(frozen: str) -> str:
    """The file, from what `pip freeze --all` printed."""
    pins = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", frozen, re.M))
    pins = {name: version for name, version in pins.items() if name not in OWN}
    if version := pins.get("tensorflow_cpu"):
        pins["tensorflow"] = version
    return HEAD + "".join(f"{name}=={pins[name]}\n" for name in sorted(pins, key=lambda one: one.lower()))


def main() -> None:
    """Install everything without constraints, and write what came."""
    where = ROOT / "build" / "lock"
    shutil.rmtree(where, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(where)], check=True)
    pip = [str(where / "bin" / "python"), "-m", "pip"]
    subprocess.run(
        [*pip, "install", "--quiet", "setuptools", ".[browser,test,release]", "./trainer_image[cpu]"],
        cwd=ROOT,
        check=True,
    )
    # Its dependency is the package tensorflow, so it comes alone, at the version of TensorFlow.
    frozen = subprocess.run([*pip, "freeze", "--all"], capture_output=True, text=True, check=True).stdout
    (version,) = re.findall(r"^tensorflow_cpu==(\d+\.\d+)", frozen, re.M)
    subprocess.run([*pip, "install", "--quiet", "--no-deps", f"tf_keras=={version}.*"], check=True)
    frozen = subprocess.run([*pip, "freeze", "--all"], capture_output=True, text=True, check=True).stdout
    CONSTRAINTS.write_text(locked(frozen))


if __name__ == "__main__":
    main()
