# SPDX-License-Identifier: Apache-2.0
"""A Go module that a program needs with a few files more than the module proxy has of it.

Volcano keeps `volcano.sh/apis` in its own tree, from which a release's modules are published; the proxy has Volcano
1.15.0 and of that module only 1.14.0, which lacks one constant. Go lets nobody add files to its cache, so the build
gets a copy of the module with the files below `added/` in it, by a go.mod of its own beside the copy.
"""

import json
import shutil
import subprocess
from pathlib import Path

ADDED = "added"
"""Below the directory of a go.mod: what is added to a module, laid out as that is."""


def source(go: str, directory: Path, module: str, environment: dict[str, str]) -> Path:
    """The directory of a module in Go's cache, of the version that the go.mod in `directory` names. Raises
    CalledProcessError where it cannot be had."""
    asked = [go, "mod", "download", "-json", module]
    found = subprocess.run(asked, cwd=directory, env=environment, capture_output=True, text=True, check=True)
    return Path(json.loads(found.stdout)["Dir"])


def modfile(go: str, directory: Path, module: str, work: Path, environment: dict[str, str]) -> Path:
    """The go.mod to build with in place of that of `directory`: `module` is a copy below `work`, with what is added to
    it. Raises CalledProcessError where the module cannot be had."""
    copy = work / module.replace("/", "-")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source(go, directory, module, environment), copy, copy_function=shutil.copyfile)
    for path in [copy, *copy.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)  # Go's cache is read-only, its directories too
    shutil.copytree(directory / ADDED, copy, dirs_exist_ok=True)
    shutil.copyfile(directory / "go.sum", work / "go.sum")
    made = work / "go.mod"
    made.write_text(with_copy((directory / "go.mod").read_text(), module, copy))
    return made


def with_copy(text: str, module: str, copy: Path) -> str:
    """A go.mod with this module taken from a directory. Raises ValueError where it does not say whence it comes now."""
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if line.startswith(f"\t{module} => "):
            lines[number] = f"\t{module} => {copy}\n"
            return "".join(lines)
    raise ValueError(f"go.mod has no line `{module} => ...` in its replace block; add it")
