# SPDX-License-Identifier: Apache-2.0
"""containerd in the node's namespaces, and images for it."""

import shutil
import sys
from pathlib import Path

from tools.cluster.program import Program
from tools.node import images
from tools.node.namespaces import Namespaces, run
from tools.node.network import Subnet

PAUSE = "localhost/dtjob-pause:1"
_CONFIG = """
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cni}"
"""


class Containerd:
    """The container runtime of one node. Attributes: `socket`, and `program`, which may be killed and started again:
    containers run on."""

    def __init__(self, namespaces: Namespaces, subnet: Subnet) -> None:
        self._namespaces = namespaces
        self._subnet = subnet
        self._directory = namespaces.directory
        self.socket = self._directory / "containerd.sock"

    def start(self) -> None:
        """Start containerd, wait until it answers, and give it the image that holds a pod's namespaces."""
        cni = self._directory / "cni"
        self._subnet.write_cni(cni)
        config = self._directory / "containerd.toml"
        config.write_text(_CONFIG.format(socket=self.socket, pause=PAUSE, cni=cni))
        command = self._namespaces.entering("containerd", f"--config={config}")
        self.program = Program("containerd", command, self._directory)
        self.program.wait_until(lambda: answers(self.socket))
        archive = self._directory / "pause.tar"
        images.write(archive, PAUSE, {"pause": Path(shutil.which("catatonit") or "")}, ["/pause", "-P"])
        self.import_image(archive)

    def import_image(self, archive: Path) -> None:
        """Bring an image to the node: a tar as `buildah push IMAGE docker-archive:FILE:NAME` writes it."""
        ctr(self._namespaces, self.socket, "images", "import", str(archive))

    def kill(self, container: str) -> None:
        """SIGKILL the first process of a running container, by its id."""
        ctr(self._namespaces, self.socket, "tasks", "kill", "--signal=SIGKILL", container)

    def kill_largest(self, container: str) -> None:
        """SIGKILL the process of a running container that has the most memory, which may be its first."""
        tasks = ctr(self._namespaces, self.socket, "tasks", "list").splitlines()
        pid = next((line.split()[1] for line in tasks if line.startswith(container)), None)
        assert pid is not None, f"container {container} does not run"
        self._namespaces.run(sys.executable, str(Path(__file__).with_name("kill_largest.py")), pid)

    def stop(self) -> None:
        """Stop containerd."""
        self.program.stop()


def ctr(namespaces: Namespaces, socket: Path, *arguments: str) -> str:
    """Run ctr on what belongs to Kubernetes; what it says. Raises AssertionError where it fails."""
    return namespaces.run("ctr", f"--address={socket}", "-n", "k8s.io", *arguments)


def answers(socket: Path) -> bool:
    """Whether a containerd answers here."""
    if not socket.exists():
        return False
    try:
        run("ctr", f"--address={socket}", "version")
    except AssertionError:
        return False
    return True
