# SPDX-License-Identifier: Apache-2.0
"""A whole Kubernetes cluster on the bare machine: a control plane, two nodes and CoreDNS, from binaries.

    with Node(programs) as node:            # programs: binaries.find(NODE)
        node.import_image(Path("trainer.tar"))
        node.kubectl("apply", "-f", "job.yaml")

One runs on a machine at a time. When it stops, and also when its process is killed, nothing of it is left.
NetworkPolicies are stored and not enforced, unless `policies.py` does it for one node. Of the Services only
`kubernetes` has an address that works, so use headless ones.
"""

import contextlib
import fcntl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tools import images
from tools.cluster.control_plane import ControlPlane, Options
from tools.cluster.program import Program, ProgramError
from tools.cluster.rest import Api
from tools.node import coredns, image_store, kubelet, leftovers, network
from tools.node.directories import Provisioner
from tools.node.machine import Machine
from tools.node.namespaces import Namespaces
from tools.node.packages import UnavailableError
from tools.programs import cache

LOCK_SECONDS = 60.0
"""How long a new node waits for an old one's remains to go."""
NODES = 2
EVICTION_SECONDS = 30
"""How long pods stay on a node that is lost, where they say nothing else; 300 on other clusters."""
COREDNS_USER = ("coredns", "system:masters")


def directory() -> Path:
    """All that a running node holds on disk."""
    return cache() / "node"


class Node:
    """The running cluster. Attributes: `kubeconfig` (an administrator's), `directory` (with every log), `machines`."""

    def __init__(self, programs: dict[str, Path]) -> None:
        self.programs = programs
        self.directory = directory()
        self.volumes = self.directory / "volumes"
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Return when the nodes are Ready. Raises UnavailableError where another one runs, ProgramError with a log."""
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
        """Bring an image to every node: a tar as `buildah push IMAGE docker-archive:FILE:NAME` writes it."""
        with ThreadPoolExecutor() as pool:
            for _ in pool.map(lambda machine: machine.containerd.import_image(archive), self.machines):
                pass  # raises what an import raised

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
        namespaces = Namespaces(self.directory)
        self.machines = [Machine(number, self.directory, namespaces) for number in range(NODES)]
        try:
            namespaces.start()
            undo.callback(namespaces.stop)
            network.start(namespaces)
            for machine in self.machines:
                machine.start_network(undo)
        except (ProgramError, AssertionError) as error:  # rootless container; the addresses are in use; no bridges
            reason = str(error).splitlines()[-1]
            raise UnavailableError(f"this machine gives a node no namespaces or network: {reason}") from None
        image_store.update(namespaces, images.IMAGES.values())
        options = Options(
            address=network.HOST,
            whole=True,
            users=(*(machine.user for machine in self.machines), COREDNS_USER),
            api_arguments=(
                *kubelet.write_api_credentials(self.directory),
                f"--default-unreachable-toleration-seconds={EVICTION_SECONDS}",
            ),
        )
        plane = self.control_plane = undo.enter_context(ControlPlane(self.programs, options))
        network.route_kubernetes_service(namespaces, plane.port)
        self.kubeconfig = self.directory / "kubeconfig"
        self.kubeconfig.write_text(plane.kubeconfig.read_text())
        client_ca = kubelet.client_certificate(self.directory)
        for machine in self.machines:
            machine.start(undo, self.programs["kubelet"], plane.kubeconfig_for(machine.user[0]), client_ca)
        dns: Program = coredns.start(namespaces, self.programs["coredns"], plane.kubeconfig_for(COREDNS_USER[0]))
        undo.callback(dns.stop)
        api = Api(plane.kubeconfig)
        for machine in self.machines:
            machine.kubelet.program.wait_until(partial(_ready, api, machine.name))
        undo.enter_context(Provisioner(api, self.volumes))


def _ready(api: Api, name: str) -> bool:
    nodes = [node for node in api.list("nodes") if node["metadata"]["name"] == name]
    conditions = [one for node in nodes for one in node.get("status", {}).get("conditions", [])]
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
