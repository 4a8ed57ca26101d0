# SPDX-License-Identifier: Apache-2.0
"""Docker for kind: the one that answers, or Debian's, which is started here and ends with `make kind-down`."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from tools.images import Say
from tools.node import cgroup, packages
from tools.node.packages import UnavailableError
from tools.programs import cache

PROGRAMS = {
    "dockerd": "docker" + ".io",  # in two parts: a registry has the name of Debian's package
    "runc": "runc",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
    "tini": "tini",
}
"""What Docker, and an image of kind's nodes, need of the system: each program, and the Debian package that has it."""
READY_SECONDS = 60
SYS_RESOURCE = 24
"""The number of the capability that `--privileged` asks for, and that root lacks on some machines."""
CGROUP = "docker"
"""The cgroup of all containers, below each hierarchy's root."""
RUNTIME = Path(__file__).with_name("runc.sh")


def home() -> Path:
    """The directory of our Docker: its data, its socket and its log."""
    return cache() / "docker"


def answers() -> bool:
    """Whether a Docker runs here, by the environment of this process."""
    return bool(shutil.which("docker")) and not subprocess.run(["docker", "info"], capture_output=True).returncode


def ours() -> dict[str, str]:
    """The environment in which the Docker of `home()` is found. Debian's client comes first, as it fits its server."""
    return {"DOCKER_HOST": f"unix://{home() / 'docker.sock'}", "PATH": f"{home() / 'bin'}:{os.environ['PATH']}"}


def ensure(say: Say = print) -> None:
    """Let this process find a Docker that answers, and start one if there is none. Raises UnavailableError."""
    if answers():
        return
    packages.ensure(say, PROGRAMS, "Docker")
    if answers():  # the package has started one
        return
    own = home() / "bin"
    own.mkdir(parents=True, exist_ok=True)
    link(own / "docker", Path("/usr/bin/docker"))
    os.environ.update(ours())
    if not answers():
        _start(say)


def weigh(nodes: int) -> None:
    """Let the containers of a Docker that makes its cgroups itself weigh as much as some machines. They would weigh as
    much as one process, and lose leases beside other work."""
    asked = ["docker", "info", "--format", "{{.CgroupDriver}}"]
    if os.geteuid() == 0 and subprocess.run(asked, capture_output=True, text=True).stdout.strip() == "cgroupfs":
        cgroup.weigh(CGROUP, nodes)


def link(path: Path, target: Path) -> None:
    """Make a symbolic link, in place of another one. A target found by the link itself is what that leads to."""
    target = target.resolve()
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _start(say: Say) -> None:
    say(f"starting Docker in {home()}")
    command = [
        *("dockerd", "--host", ours()["DOCKER_HOST"], "--data-root", str(home() / "data")),
        *("--exec-root", str(home() / "run"), "--pidfile", str(_pid_file())),
    ]
    if lacks(SYS_RESOURCE, Path("/proc/self/status").read_text()):
        command += ["--add-runtime", f"dtjob={RUNTIME}", "--default-runtime", "dtjob"]
    with (home() / "dockerd.log").open("w") as log:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    end = time.monotonic() + READY_SECONDS
    while not answers():
        if started.poll() is not None or time.monotonic() > end:
            stop()
            last = (home() / "dockerd.log").read_text().strip().splitlines()[-1:]
            raise UnavailableError(f"dockerd did not become ready: {''.join(last)}")
        time.sleep(0.2)


def stop() -> None:
    """End the Docker that was started here, with its containers. What it has stored stays."""
    while (pid := running()) is not None:
        os.kill(pid, signal.SIGTERM)
        time.sleep(0.5)


def lacks(capability: int, status: str) -> bool:
    """Whether a process of this /proc/PID/status can never have a capability."""
    bounding = next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:"))
    return not int(bounding, 16) >> capability & 1


def _pid_file() -> Path:
    return home() / "docker.pid"


def running() -> int | None:
    """The process of our Docker, if it runs."""
    try:
        pid = int(_pid_file().read_text())
        return pid if Path(f"/proc/{pid}/comm").read_text() == "dockerd\n" else None
    except (OSError, ValueError):
        return None
