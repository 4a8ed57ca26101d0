# SPDX-License-Identifier: Apache-2.0
"""A cluster that is there already, by its kubeconfig, as the cluster of the end-to-end tests.

DTJOB_KUBECONFIG                    its kubeconfig; the current context is used, as an administrator
DTJOB_E2E_OPERATOR_IMAGE            a reference of the operator's image that its nodes can pull,
DTJOB_E2E_TRAINER_IMAGE             one of the trainer's,
DTJOB_E2E_LOAD                      or a shell command that brings an {archive} to every node, such as
                                    'ctr --address=SOCKET -n k8s.io images import {archive}'
DTJOB_E2E_SHARED_STORAGE_CLASS      a StorageClass with ReadWriteMany volumes; others come from the default one
DTJOB_E2E_NETWORK_POLICIES          'enforced', where the cluster enforces them
"""

import contextlib
import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tools.cluster import kubectl
from tools.cluster.cluster import UnsupportedError
from tools.cluster.rest import Object
from tools.images import Image
from tools.node.packages import UnavailableError

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


class ExistingCluster:
    """A `Cluster` (cluster.py) of somebody's. What the tests make there goes with their namespaces."""

    name = "the cluster of DTJOB_KUBECONFIG"

    def __init__(self, program: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._program = program
        self._environment = environment
        self._loaded: dict[Path, str] = {}
        self._undo = contextlib.ExitStack()
        self.kubeconfig = Path(environment["DTJOB_KUBECONFIG"])
        self.nodes: tuple[str, ...] = ()

    def start(self) -> None:
        """Find the nodes. Raises UnavailableError where nobody answers, or only as nobody in particular."""
        home = Path(self._undo.enter_context(tempfile.TemporaryDirectory(prefix="dtjob-e2e-")))
        try:
            if not self.kubeconfig.is_file():
                raise UnavailableError(f"DTJOB_KUBECONFIG names {self.kubeconfig}, which is no file")
            # A copy of the current context alone, with its certificates in it: it stays while the user's may change.
            config = self.kubectl("config", "view", "--raw", "--minify", "--flatten").stdout
            self.kubeconfig = home / "kubeconfig"
            self.kubeconfig.touch(0o600)
            self.kubeconfig.write_text(config)
            nodes = json.loads(self.kubectl("get", "nodes", "-o", "json", "--request-timeout=20s").stdout)["items"]
        except AssertionError as error:
            self.stop()
            raise UnavailableError(f"DTJOB_KUBECONFIG: {str(error).splitlines()[-1]}") from None
        except UnavailableError:
            self.stop()
            raise
        self.nodes = schedulable(nodes)

    def stop(self) -> None:
        """Forget the cluster."""
        self._undo.close()

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator. With `check`, a failure raises AssertionError with what kubectl said."""
        return kubectl.run(self._program, self.kubeconfig, *arguments, stdin=stdin, check=check)

    def load(self, image: Image) -> str:
        """The reference that the environment gives for this image; else bring it there by DTJOB_E2E_LOAD, once."""
        variable = f"DTJOB_E2E_{image.name.upper()}_IMAGE"
        if reference := self._environment.get(variable):
            return reference
        command = self._environment.get("DTJOB_E2E_LOAD")
        if not command:
            raise UnsupportedError(f"{self.name} has no {image.name} image: set {variable} or DTJOB_E2E_LOAD")
        if image.archive not in self._loaded:
            filled = command.replace("{archive}", shlex.quote(str(image.archive)))
            done = subprocess.run(filled, shell=True, capture_output=True, text=True)
            assert done.returncode == 0, f"DTJOB_E2E_LOAD: {filled}: {done.stderr.strip() or done.stdout.strip()}"
            self._loaded[image.archive] = image.reference
        return self._loaded[image.archive]

    def claim(self, namespace: str, name: str, *, shared: bool = False) -> None:
        """Make a claim of the default StorageClass, or with `shared` of the one that the environment names."""
        storage_class = None
        if shared:
            storage_class = self._environment.get("DTJOB_E2E_SHARED_STORAGE_CLASS")
            if not storage_class:
                raise UnsupportedError(
                    f"{self.name} has no shared volumes that we know of: set DTJOB_E2E_SHARED_STORAGE_CLASS"
                )
        elif not has_default(json.loads(self.kubectl("get", "storageclasses", "-o", "json").stdout)["items"]):
            raise UnsupportedError(f"{self.name} has no default StorageClass")
        self.kubectl("create", "-f", "-", stdin=json.dumps(claim(namespace, name, shared, storage_class)))

    def kill_container(self, pod: Object, container: str) -> None:
        """Nobody can from outside: raises UnsupportedError."""
        raise UnsupportedError(f"nobody outside can kill a container's first process on {self.name}")

    def stop_kubelet(self, node: str) -> None:
        """The nodes are not ours: raises UnsupportedError."""
        raise UnsupportedError(f"the kubelets of {self.name} are not ours to stop")

    def start_kubelet(self, node: str) -> None:
        """Start it again."""
        raise UnsupportedError(f"the kubelets of {self.name} are not ours to start")

    def network_policies(self) -> contextlib.nullcontext[str]:
        """They are enforced on every node, or UnsupportedError is raised."""
        if self._environment.get("DTJOB_E2E_NETWORK_POLICIES") != "enforced":
            raise UnsupportedError(
                f"whether {self.name} enforces NetworkPolicies is unknown: set DTJOB_E2E_NETWORK_POLICIES"
            )
        return contextlib.nullcontext(self.nodes[0])

    def write_logs(self, directory: Path) -> None:
        """Its own programs' logs are out of reach."""


def schedulable(nodes: list[Object]) -> tuple[str, ...]:
    """The names of those nodes that take pods without a toleration, and are Ready."""

    def takes_pods(node: Object) -> bool:
        spec, conditions = node["spec"], node.get("status", {}).get("conditions", [])
        repelled = spec.get("unschedulable") or any(
            taint["effect"] in ("NoSchedule", "NoExecute") for taint in spec.get("taints") or ()
        )
        return not repelled and any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    return tuple(sorted(node["metadata"]["name"] for node in nodes if takes_pods(node)))


def has_default(classes: list[Object]) -> bool:
    """Whether one of the StorageClasses is the default."""
    return any((one["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true" for one in classes)


def claim(namespace: str, name: str, shared: bool, storage_class: str | None) -> Object:
    """A claim of this StorageClass; None is the default one."""
    spec: Object = {
        "accessModes": ["ReadWriteMany" if shared else "ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    }
