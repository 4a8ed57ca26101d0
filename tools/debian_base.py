# SPDX-License-Identifier: Apache-2.0
"""A base image from Debian's packages, for machines that have neither a container engine nor a registry.

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

SUITE = "bookworm"
PACKAGES = ("python3", "python3-venv", "ca-certificates")
MACHINES = ("etc/hostname", "etc/resolv.conf", "etc/apt/sources.list", "etc/machine-id")
"""What debootstrap copies or derives from the machine it runs on."""
UNNEEDED = ("dev", "proc", "sys", "var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/man", "usr/share/info",
            "usr/share/locale")  # fmt: skip
"""Directories that are emptied: no container reads them, or the container runtime mounts over them."""

Buildah = Callable[..., str]
Say = Callable[[str], None]


def reference() -> str:
    """The base image's name in buildah's store; another recipe is another name."""
    recipe = repr((PACKAGES, MACHINES, UNNEEDED))
    return f"localhost/dtjob-base:{SUITE}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"


def ensure(buildah: Buildah, workspace: Path, say: Say) -> str:
    """The base image's name, after making it where `buildah`'s store does not hold it.

    `buildah` runs one buildah command and returns what it printed; `workspace` has room for a gigabyte for a while.
    """
    name = reference()
    if buildah("images", "--quiet", "--filter", f"reference={name}"):
        return name
    say(f"  base image: Debian {SUITE} with {', '.join(PACKAGES)}, by debootstrap, once (1 to 2 minutes)")
    with tempfile.TemporaryDirectory(dir=workspace, prefix="base-") as directory:
        root = Path(directory) / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, str(root), *mirror()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise OSError(f"`{' '.join(command)}` ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}")
        clean(root)
        container = buildah("from", "scratch")
        try:
            buildah("copy", "--quiet", container, str(root), "/")
            buildah("config", "--env", "LANG=C.UTF-8", "--cmd", "python3", container)
            buildah("commit", "--quiet", container, name)
        finally:
            buildah("rm", container)
    return name


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
