# SPDX-License-Identifier: Apache-2.0
"""What a node needs from the system: root, Linux, and programs that come from Debian's packages."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "buildah": "buildah",
    "debootstrap": "debootstrap",
    "catatonit": "catatonit",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "iptables": "iptables",
    "openssl": "openssl",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
"""Each program, and the package that has it."""

Say = Callable[[str], None]


class UnavailableError(Exception):
    """There can be no node here; the message says why in one line."""


def missing(programs: Mapping[str, str] = PACKAGES) -> list[str]:
    """The packages whose programs are not here."""
    return sorted({package for program, package in programs.items() if not shutil.which(program)})


def ensure(say: Say = print, programs: Mapping[str, str] = PACKAGES, who: str = "a node") -> None:
    """Install what is missing by apt, saying what. Raises UnavailableError where that is not possible."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise UnavailableError(f"{who} needs Linux and root")
    if not Path("/sys/fs/cgroup").is_dir():
        raise UnavailableError(f"{who} needs /sys/fs/cgroup")
    wanted = missing(programs)
    if not wanted:
        return
    if not shutil.which("apt-get"):
        raise UnavailableError(f"{who} needs {', '.join(wanted)}, and there is no apt-get to install them")
    say(f"installing with apt-get: {', '.join(wanted)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *wanted]):
        done = subprocess.run(["apt-get", "--quiet", *arguments], env=environment, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise UnavailableError(f"apt-get {arguments[0]} of {', '.join(wanted)} failed: {''.join(last)}")
