# SPDX-License-Identifier: Apache-2.0
"""A base image from Debian's packages, for machines on which no registry answers.

It holds what the Dockerfiles ask of their base (Python, its venv module, CA certificates) and nothing of the machine
that it was made on. Standard library only.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
MACHINES = ("etc/hostname", "etc/resolv.conf", "etc/apt/sources.list", "etc/machine-id")
"""What debootstrap copies or derives from the machine it runs on."""
UNNEEDED = ("dev", "proc", "sys", "var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/man", "usr/share/info",
            "usr/share/locale")  # fmt: skip
"""Directories that are emptied: no container reads them, or the container runtime mounts over them."""

Say = Callable[[str], None]
_ENVIRONMENT = "LANG=C.UTF-8"
_COMMAND = "python3"


class Engine(Protocol):
    """A program that keeps images: Docker, podman or buildah."""

    @property
    def name(self) -> str:
        """Which of them."""

    def __call__(self, *arguments: str) -> str:
        """Run one of its commands and return what it printed."""


def reference() -> str:
    """The base image's name in an engine's store; another recipe is another name."""
    recipe = repr((PACKAGES, MACHINES, UNNEEDED))
    return f"localhost/dtjob-base:{SUITE}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def ensure(engine: Engine, workspace: Path, say: Say) -> str:
    """The base image's name, after making it where the engine's store does not hold it.

    `workspace` has room for a gigabyte for a while. Raises OSError if debootstrap fails.
    """
    name = reference()
    if engine("images", "--quiet", "--filter", f"reference={name}"):
        return name
    say(f"  base image: Debian {SUITE} with {', '.join(PACKAGES)}, by debootstrap, once (1 to 2 minutes)")
    with tempfile.TemporaryDirectory(dir=workspace, prefix="base-") as directory:
        root = Path(directory) / "root"
        _run("debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(root), *mirror())
        clean(root)
        if engine.name == "buildah":
            _commit(engine, root, name)
        else:
            archive = f"{directory}/root.tar"
            _run("tar", "-C", str(root), "-cf", archive, ".")
            changes = (f"ENV {_ENVIRONMENT}", f'CMD ["{_COMMAND}"]')
            engine("import", *(f"--change={change}" for change in changes), archive, name)
    return name


def _commit(buildah: Engine, root: Path, name: str) -> None:
    container = buildah("from", "scratch")
    try:
        buildah("copy", "--quiet", container, str(root), "/")
        buildah("config", "--env", _ENVIRONMENT, "--cmd", _COMMAND, container)
        buildah("commit", "--quiet", container, name)
    finally:
        buildah("rm", container)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")


def mirror() -> Sequence[str]:
    """The machine's own source of this Debian release, as debootstrap's argument; empty where apt knows none."""
    command = ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", "Created-By: Packages"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ()
    return [uri for codename, _, uri in (line.partition(" ") for line in listed.splitlines()) if codename == SUITE][:1]


def clean(root: Path) -> None:
    """Remove from a debootstrapped tree what is the machine's and what no container needs; licences stay."""
    for name in MACHINES:
        (root / name).unlink(missing_ok=True)
    for name in UNNEEDED:
        directory = root / name
        for entry in directory.iterdir() if directory.is_dir() else ():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
    for folder, _, files in os.walk(root / "usr/share/doc"):
        for file in files:
            if file != "copyright":
                (Path(folder) / file).unlink()
