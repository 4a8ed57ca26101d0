# SPDX-License-Identifier: Apache-2.0
"""kind as the cluster of the end-to-end tests, where Docker runs: one control-plane node and two workers.

kind is taken from the PATH, or built from its Go module. It has one cluster of ours at a time on a machine. A janitor
deletes it when the tests' process is gone, however that came; so does the next start.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import yaml

from tools import binaries
from tools.cluster import existing, kubectl
from tools.cluster.cluster import UnsupportedError, container_id
from tools.cluster.control_plane import LOST_NODE_SECONDS
from tools.cluster.rest import Object
from tools.cluster.volumes import volume_and_claim
from tools.images import Image
from tools.kind import docker
from tools.node.node import EVICTION_SECONDS
from tools.node.packages import UnavailableError
from tools.programs import cache

CLUSTER = "dtjob-e2e"
VOLUMES = PurePosixPath("/dtjob-volumes")
"""One directory of this machine, as every node sees it."""
WORKERS = 2
READY_SECONDS = 180
IMAGE = "DTJOB_E2E_KIND_IMAGE"
"""The variable that names the image of the nodes. kind has its own otherwise."""
JANITOR = 'cat >/dev/null; exec "$@" >/dev/null 2>&1'


class KindCluster:
    """A `Cluster` (cluster.py) of Docker containers. `programs` are kind and kubectl."""

    name = "kind"

    def __init__(self, programs: dict[str, Path]) -> None:
        self._programs = programs
        self._loaded: set[Path] = set()
        self._undo = contextlib.ExitStack()
        self.kubeconfig = Path()
        self.nodes: tuple[str, ...] = ()

    def start(self) -> None:
        """Return when the nodes are Ready. Raises UnavailableError where another one runs, or kind fails."""
        with contextlib.ExitStack() as undo:
            lock = _machine_lock(undo)
            directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="dtjob-kind-")))
            self.kubeconfig = directory / "kubeconfig"
            self._volumes = directory / "volumes"
            self._volumes.mkdir()
            delete = self._command("delete", "cluster", "--name", CLUSTER, "--kubeconfig", str(self.kubeconfig))
            subprocess.run(delete, capture_output=True)  # what a crash may have left
            janitor = subprocess.Popen(
                ["sh", "-c", JANITOR, "sh", *delete], stdin=subprocess.PIPE, start_new_session=True, pass_fds=[lock]
            )
            undo.callback(janitor.communicate)  # closes its input, and waits until the cluster is deleted
            undo.callback(self._empty_volumes)
            self._create(directory)
            self._undo = undo.pop_all()

    def stop(self) -> None:
        """Delete the cluster."""
        self._undo.close()

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator. With `check`, a failure raises AssertionError with what kubectl said."""
        return kubectl.run(self._programs["kubectl"], self.kubeconfig, *arguments, stdin=stdin, check=check)

    def load(self, image: Image) -> str:
        """Bring a built image to every node, once; returns the reference by which manifests ask for it."""
        if image.archive not in self._loaded:
            nodes = ",".join(self.nodes)  # the others take no pods
            _run(*self._command("load", "image-archive", str(image.archive), "--name", CLUSTER, "--nodes", nodes))
            self._loaded.add(image.archive)
        return image.reference

    def claim(self, namespace: str, name: str, *, shared: bool = False) -> None:
        """Make a claim bound to a volume of its own, which every node has: kind's own class ties a claim to a node."""
        inside = VOLUMES / namespace / name
        _run(*docker_exec(self.nodes[0], "mkdir", "--parents", "--mode=0777", str(inside)))
        for manifest in volume_and_claim(namespace, name, inside, shared):
            self.kubectl("create", "-f", "-", stdin=json.dumps(manifest))

    def kill_container(self, pod: Object, container: str) -> None:
        """SIGKILL the first process of a pod's container, as the kernel's out-of-memory killer would."""
        kill = ("ctr", "--namespace=k8s.io", "tasks", "kill", "--signal=SIGKILL", container_id(pod, container))
        _run(*docker_exec(pod["spec"]["nodeName"], *kill))

    def stop_kubelet(self, node: str) -> None:
        """Stop a node's kubelet: to the cluster the node is gone, its containers run on."""
        _run(*docker_exec(node, "systemctl", "stop", "kubelet"))

    def start_kubelet(self, node: str) -> None:
        """Start it again."""
        _run(*docker_exec(node, "systemctl", "start", "kubelet"))

    def network_policies(self) -> contextlib.nullcontext[str]:
        """kind's own network plugin enforces them, since kind 0.24. That of tools/kind/default-cni.yaml has a label."""
        if self.kubectl("get", "daemonsets", "-A", "-o", "name", "-l", "dtjob.dev/network-policies=stored").stdout:
            raise UnsupportedError(
                "kind without its own network plugin stores NetworkPolicies and does not enforce them"
            )
        return contextlib.nullcontext(self.nodes[0])

    def write_logs(self, directory: Path) -> None:
        """What kind exports of its nodes."""
        subprocess.run(self._command("export", "logs", str(directory), "--name", CLUSTER), capture_output=True)

    def _create(self, directory: Path) -> None:
        file = directory / "kind.yaml"
        file.write_text(yaml.safe_dump(config(self._volumes)))
        docker.weigh(1 + WORKERS)
        create(self._programs["kind"], CLUSTER, self.kubeconfig, "--config", file)
        self.kubectl("wait", "nodes", "--all", "--for=condition=Ready", f"--timeout={READY_SECONDS}s")
        self.nodes = self.wait_for_workers()

    def wait_for_workers(self) -> tuple[str, ...]:
        """The nodes that take pods, once all workers do: a node keeps its taint for a moment after it is Ready. Raises
        UnavailableError."""
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            nodes = existing.schedulable(json.loads(self.kubectl("get", "nodes", "-o", "json").stdout)["items"])
            if len(nodes) == WORKERS:
                return nodes
            time.sleep(0.5)
        raise UnavailableError(f"kind: fewer than {WORKERS} nodes take pods after {READY_SECONDS} s")

    def _empty_volumes(self) -> None:
        """What pods wrote there is not ours to remove from here."""
        if self.nodes:
            subprocess.run(
                docker_exec(self.nodes[0], "find", str(VOLUMES), "-mindepth", "1", "-delete"), capture_output=True
            )

    def _command(self, *arguments: str) -> list[str]:
        return [str(self._programs["kind"]), *arguments]


def programs(say: Callable[[str], None] = print) -> dict[str, Path]:
    """kind and kubectl. Raises binaries.BinariesError where they can be neither found nor built."""
    there = shutil.which("kind")
    found = binaries.find(["kubectl"] if there else ["kubectl", "kind"], say)
    return {**found, "kind": Path(there)} if there else found


def create(program: Path, name: str, kubeconfig: Path, *options: str | Path) -> None:
    """Make a cluster with kind, whose nodes are of the image that IMAGE names. Raises UnavailableError."""
    image = os.environ.get(IMAGE)
    given = ["--image", image] if image else []
    wait = f"--wait={READY_SECONDS}s"
    call(program, "create", "cluster", "--name", name, "--kubeconfig", kubeconfig, wait, *options, *given)


def call(program: Path, *arguments: str | Path) -> str:
    """Run kind and return what it printed. Raises UnavailableError with its complaint."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise UnavailableError(f"kind: {complaint(done.stderr)}")
    return done.stdout


def config(volumes: Path) -> Object:
    """kind's configuration: `volumes` is one directory of this machine for every node. Lost nodes are noticed soon."""
    mounts = [{"hostPath": str(volumes), "containerPath": str(VOLUMES)}]
    # Without an apiVersion and with maps: kind turns them into what the kubeadm of its nodes reads.
    patch = {
        "kind": "ClusterConfiguration",
        "apiServer": {"extraArgs": {"default-unreachable-toleration-seconds": str(EVICTION_SECONDS)}},
        "controllerManager": {"extraArgs": {"node-monitor-grace-period": f"{LOST_NODE_SECONDS}s"}},
    }
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": CLUSTER,
        "kubeadmConfigPatches": [yaml.safe_dump(patch)],
        "nodes": [{"role": role, "extraMounts": mounts} for role in ("control-plane", *["worker"] * WORKERS)],
    }


def docker_exec(node: str, *command: str) -> list[str]:
    """The command line that runs a command on a node; kind's nodes are containers of their names."""
    return ["docker", "exec", node, *command]


def complaint(said: str) -> str:
    """The line of kind's complaint that says why."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "it failed silently")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}"
    return done.stdout


def _machine_lock(undo: contextlib.ExitStack) -> int:
    """The lock that our kind cluster holds, until `undo` and until its janitor is through."""
    directory = cache()
    directory.mkdir(parents=True, exist_ok=True)
    file = undo.enter_context((directory / "kind.lock").open("w")).fileno()
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UnavailableError(f"another kind cluster {CLUSTER} is in use, or is being deleted") from None
    return file
