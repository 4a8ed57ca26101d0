# SPDX-License-Identifier: Apache-2.0
"""The nodes' own PID, IPC and network namespaces, and each node's mount namespace in them.

Whatever is started, mounted or routed there ends with the first process, which dies with this process. So no crash
leaves a process, a mount, a bridge or an iptables rule behind, and nothing of the nodes can collide with what else runs
on the machine.
"""

import subprocess
from pathlib import Path

from tools.cluster.program import Program
from tools.node import leftovers

_KERNEL = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What a kubelet sets for the whole machine. It is shown these as set already, and leaves the machine's alone."""


class Namespaces:
    """The namespaces of all nodes; or, with `outer`, a mount namespace more in them, for one node.

    `directory` gets what that node sees as /var/lib and /var/log.
    """

    def __init__(self, directory: Path, outer: "Namespaces | None" = None) -> None:
        self.directory = directory
        self.outer = outer
        self.pid = 0

    def start(self) -> None:
        """Make the namespaces with their mounts. Raises ProgramError or AssertionError where the kernel refuses."""
        if self.outer:
            command = self.outer.entering("unshare", "--mount", "catatonit", "-P")
        else:
            unshare = "unshare --mount --pid --ipc --net --fork --kill-child=KILL --mount-proc catatonit -P"
            command = unshare.split()
        init = self._init = Program("init", command, self.directory)
        init.wait_until(self._found)
        if self.outer:
            self._mount()
        else:
            (self.directory / leftovers.INIT).write_text(f"{self.pid} {leftovers.started(self.pid)}")

    def _mount(self) -> None:
        self.run("mount", "--make-rshared", "/")  # as on a real node; outside of it nothing is shared
        self.run("mount", "-t", "tmpfs", "tmpfs", "/run")
        for name in ("lib", "log"):
            (self.directory / name).mkdir()
            self.run("mount", "--bind", str(self.directory / name), f"/var/{name}")
        for name, value in _KERNEL.items():
            file = self.directory / "kernel" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{value}\n")
            self.run("mount", "--bind", str(file), f"/proc/sys/{name}")

    def entering(self, *command: str) -> list[str]:
        """The command line that runs `command` in the namespaces."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--ipc", "--net", "--", *command]

    def run(self, *command: str) -> str:
        """Run a command in the namespaces and return what it says. Raises AssertionError where it fails."""
        return run(*self.entering(*command))

    def stop(self) -> None:
        """End the first process, and with it all others."""
        self._init.stop()

    def _found(self) -> bool:
        """Whether the first process runs; unshare is through with its mounts by then."""
        parent = self._init.process.pid  # unshare or nsenter
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        if not children or Path(f"/proc/{children[0]}/comm").read_text().strip() != "catatonit":
            return False
        self.pid = int(children[0])
        return True


def run(*command: str) -> str:
    """Run a command and return what it says. Raises AssertionError with its complaint where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}"
    return done.stdout
