# SPDX-License-Identifier: Apache-2.0
"""The nodes for chaos: the operator as helm installs it, a small disk for each kind of job, clocks that can jump."""

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Self

from tests.chaos.support import clocks
from tests.chaos.support.patience import patiently
from tests.cluster.support.chart import NAMESPACE as OPERATOR_NAMESPACE
from tests.e2e.jobs.support.release import Release
from tests.e2e.jobs.support.training_job import RESTRICTED
from tools import binaries, images
from tools.chart import find_helm
from tools.cluster.bare_node import BareNode
from tools.cluster.program import Program
from tools.cluster.rest import Api, Object
from tools.cluster.volumes import volume_and_claim
from tools.node import packages
from tools.node.namespaces import run
from tools.programs import NODE, cache

JOBS = "chaos"
"""The namespace of the jobs."""
DISK = "64m"


class SmallDisks:
    """A file system of a few megabytes for each kind of job, which can be full."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._top = cache() / "chaos-disks"

    def __enter__(self) -> Self:
        """Mount them. Every node sees them if it starts afterwards."""
        self._unmount()
        for name in self._names:
            self.path(name).mkdir(parents=True, exist_ok=True)
            run("mount", "-t", "tmpfs", "-o", f"size={DISK},mode=777", "tmpfs", str(self.path(name)))
        return self

    def __exit__(self, *_: object) -> None:
        self._unmount()

    def path(self, name: str) -> Path:
        """Where one is."""
        return self._top / name

    def fill(self, name: str) -> None:
        """Leave no byte free."""
        with contextlib.suppress(OSError), (self.path(name) / "ballast").open("wb", buffering=0) as file:
            while file.write(bytes(1 << 16)):
                pass

    def free(self, name: str) -> None:
        """Give the room back."""
        (self.path(name) / "ballast").unlink(missing_ok=True)

    def _unmount(self) -> None:
        for mounted in self._top.glob("*"):
            while not subprocess.run(["umount", "--lazy", str(mounted)], capture_output=True).returncode:
                pass


class Bed:
    """Attributes: `node`, `api`, `disks`, `image` (the trainer's)."""

    def __init__(self, disks: list[str], directory: Path) -> None:
        self.disks = SmallDisks(disks)
        self._directory = directory
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Self:
        """Return once the operator is up."""
        packages.ensure()
        built = images.build()
        with contextlib.ExitStack() as undo:
            undo.enter_context(self.disks)
            self.node = undo.enter_context(BareNode(binaries.find(NODE)))
            self.api = Api(self.node.kubeconfig)
            self.image, operator = (self.node.load(built[name]) for name in ("trainer", "operator"))
            library = clocks.config_map(self._directory)
            for namespace in (OPERATOR_NAMESPACE, JOBS):
                metadata = {"name": namespace, "labels": RESTRICTED}
                self.api.create("namespaces", None, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
                self.api.create("configmaps", namespace, library)
                self.api.wait_for("serviceaccounts", namespace, "default", lambda account: account is not None)
            helm = find_helm()
            assert helm, "no helm"
            Release(self.node, self.api, helm, operator, self._directory, _values()).install()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def claim(self, disk: str, name: str) -> Path:
        """Make a claim on a directory of a small disk; returns the directory."""
        directory = self.disks.path(disk) / name
        directory.mkdir()
        directory.chmod(0o777)
        for manifest in volume_and_claim(JOBS, name, directory, True):
            text = json.dumps(manifest)
            patiently(lambda text=text: self.node.kubectl("apply", "-f", "-", stdin=text))  # type: ignore[misc]
        return directory

    def programs(self) -> list[Program]:
        """Those of the control plane and of the nodes."""
        names = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
        nodes = [program for one in self.node.machines for program in (one.containerd.program, one.kubelet.program)]
        return [*map(self.node.control_plane.program, names), *nodes]

    def operators(self) -> list[Object]:
        """The operator's pods, as far as the API server answers."""
        return self.api.list("pods", OPERATOR_NAMESPACE, "app.kubernetes.io/name=dtjob")


def _values() -> tuple[str, ...]:
    """The chart's values that let the operator's clock jump."""
    found = []
    for name, value in clocks.ENVIRONMENT.items():
        found += [f"operator.env[0].name={name}", f"operator.env[0].value={value}"]
    for index, (mount, volume) in enumerate(zip(clocks.MOUNTS, clocks.VOLUMES, strict=True)):
        found += [
            f"operator.volumeMounts[{index}].{key}={json.dumps(value).strip(chr(34))}" for key, value in mount.items()
        ]
        found.append(f"operator.volumes[{index}].name={volume['name']}")
    found += [f"operator.volumes[0].configMap.name={clocks.CONFIG_MAP}", "operator.volumes[1].emptyDir.sizeLimit=1Mi"]
    return tuple(found)
