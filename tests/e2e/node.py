"""A whole Kubernetes cluster of one bare node: a control plane, kubelet, containerd and CoreDNS, from binaries.

    with Node(programs) as node:            # programs: binaries.find(binaries.NODE)
        node.import_image(Path("trainer.tar"))
        node.kubectl("apply", "-f", "job.yaml")

One node runs on a machine at a time. When it stops, and also when its process is killed, nothing of it is left.
NetworkPolicies are stored and not enforced; of the Services only `kubernetes` has an address that works, so use
headless ones.
"""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster.control_plane import ControlPlane, Options
from tests.cluster.program import Program, ProgramError
from tests.cluster.rest import Api, Object
from tests.e2e import coredns, kubelet, leftovers, network
from tests.e2e.containerd import Containerd
from tests.e2e.kubelet import Kubelet
from tests.e2e.namespaces import Namespaces
from tests.e2e.packages import UnavailableError
from tests.tools import binaries

LOCK_SECONDS = 30.0
"""How long a new node waits for an old one's remains to go."""
COREDNS_USER = ("coredns", "system:masters")


def directory() -> Path:
    """All that a running node holds on disk."""
    return binaries.cache() / "node"


class Node:
    """The running cluster. Attributes: `kubeconfig` (an administrator's), `directory` (with every log), `kubelet`."""

    def __init__(self, programs: dict[str, Path]) -> None:
        self.programs = programs
        self.directory = directory()
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Return when the node is Ready. Raises UnavailableError where another one runs, ProgramError with a log."""
        with contextlib.ExitStack() as undo:
            self._take_machine(undo)
            self._start(undo)
            self._undo = undo.pop_all()

    def stop(self) -> None:
        """End everything and remove it; returns when it is gone."""
        self._undo.close()

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator. With `check`, a failure raises AssertionError with what kubectl said."""
        return self.control_plane.kubectl(*arguments, stdin=stdin, check=check)

    def import_image(self, archive: Path) -> None:
        """Bring an image to the node: a tar as `buildah push IMAGE docker-archive:FILE:NAME` writes it."""
        self.containerd.import_image(archive)

    def _take_machine(self, undo: contextlib.ExitStack) -> None:
        """Be the only node, clear what a crash left, and leave a janitor for our own."""
        lock = machine_lock(undo)
        leftovers.remove(self.directory)
        if leftovers.link_exists():
            raise UnavailableError(f"a network interface {leftovers.LINK} is there and cannot be removed")
        self.directory.mkdir(mode=0o700)
        janitor = subprocess.Popen(
            [sys.executable, leftovers.__file__, str(self.directory)],
            stdin=subprocess.PIPE,
            start_new_session=True,
            pass_fds=[lock],  # nobody starts a node before it is through
        )
        undo.callback(janitor.communicate)  # closes its input: it removes the rest, and ends

    def _start(self, undo: contextlib.ExitStack) -> None:
        """Start everything, each with its end on `undo`: the last first."""
        namespaces = self.namespaces = Namespaces(self.directory)
        try:
            namespaces.start()
            undo.callback(namespaces.stop)
            network.start(namespaces)
        except (ProgramError, AssertionError) as error:  # rootless container; the addresses are in use; no bridges
            reason = str(error).splitlines()[-1]
            raise UnavailableError(f"this machine gives a node no namespaces or network: {reason}") from None
        options = Options(
            address=network.HOST,
            whole=True,
            users=(kubelet.USER, COREDNS_USER),
            api_arguments=kubelet.write_api_credentials(self.directory),
        )
        plane = self.control_plane = undo.enter_context(ControlPlane(self.programs, options))
        network.route_kubernetes_service(namespaces, plane.port)
        self.kubeconfig = self.directory / "kubeconfig"
        self.kubeconfig.write_text(plane.kubeconfig.read_text())
        self.containerd = Containerd(namespaces)
        self.containerd.start()
        undo.callback(self.containerd.stop)
        credentials = plane.kubeconfig_for(kubelet.USER[0])
        self.kubelet = Kubelet(namespaces, self.programs["kubelet"], self.containerd.socket, credentials)
        self.kubelet.start()
        undo.callback(self.kubelet.stop)
        dns: Program = coredns.start(namespaces, self.programs["coredns"], plane.kubeconfig_for(COREDNS_USER[0]))
        undo.callback(dns.stop)
        api = Api(plane.kubeconfig)
        self.kubelet.program.wait_until(lambda: any(map(_ready, api.list("nodes"))))


def _ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def machine_lock(undo: contextlib.ExitStack) -> int:
    """The lock that a node holds on the machine, until `undo`. Raises UnavailableError where another keeps it."""
    directory().parent.mkdir(parents=True, exist_ok=True)
    file = undo.enter_context(directory().with_suffix(".lock").open("w")).fileno()
    limit = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > limit:
                raise UnavailableError("another node runs on this machine (`make cluster-down` ends yours)") from None
        time.sleep(0.1)
