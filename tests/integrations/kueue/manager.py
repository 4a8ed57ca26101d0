# SPDX-License-Identifier: Apache-2.0
"""The real Kueue beside a bare API server: its manager as a process, its objects as its own chart has them.

The API server calls the manager's webhooks through a Service that is a name for this machine (ExternalName); their
certificates are the manager's own, which it keeps in a Secret and reads from a directory, as a pod has it mounted.
"""

import base64
import subprocess
import threading
from collections.abc import Iterator

import yaml

from dtjob.local.processes.addresses import free_ports
from tools import binaries
from tools.chart import find_helm
from tools.cluster.control_plane import ControlPlane
from tools.cluster.program import Program, answers
from tools.cluster.rest import Api, ApiError, Object

NAMESPACE = "kueue-system"
FRAMEWORK = "DistributedTrainingJob.v1beta1.training.dtjob.dev"
SECRET = "kueue-webhook-server-cert"
KINDS = (
    "CustomResourceDefinition",
    "Secret",
    "Service",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
"""What of the chart is applied: the manager works with an administrator's rights."""


class NoKueue(Exception):
    """The real Kueue cannot be had here; the message says why."""


class Kueue:
    """One manager. `start` and `stop` it as often as a test wants."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster, self._api = cluster, Api(cluster.kubeconfig)
        self._port, self._health = free_ports(2)
        self._directory = cluster.directory / "kueue"
        self._certificates = self._directory / "certificates"
        self._certificates.mkdir(parents=True)
        self._running: Program | None = None
        self._stopping = threading.Event()
        try:
            self._program = binaries.find(("kueue",))["kueue"]
            self._chart = binaries.source("kueue") / "charts" / "kueue"
        except binaries.BinariesError as error:
            raise NoKueue(str(error).splitlines()[0]) from None

    def install(self) -> None:
        """Apply its definitions, webhooks and what they need."""
        self._cluster.kubectl("create", "namespace", NAMESPACE)
        objects = "---\n".join(yaml.safe_dump(one) for one in self._objects())
        self._cluster.kubectl("apply", "--server-side", "--filename=-", stdin=objects)
        self._api.wait_established("workloads.kueue.x-k8s.io")

    def start(self) -> None:
        """Start it, and wait until it works."""
        config = self._directory / "config.yaml"
        config.write_text(yaml.safe_dump(self._configuration()))
        command = [
            *("env", f"KUBECONFIG={self._cluster.kubeconfig}", str(self._program)),
            *(f"--config={config}", "--feature-gates=VisibilityOnDemand=false", "--zap-log-level=3"),
        ]
        self._stopping.clear()
        self._running = Program("kueue", command, self._directory)
        copier = threading.Thread(target=self._copy_certificates, daemon=True)
        copier.start()
        try:
            self._running.wait_until(lambda: answers(f"http://127.0.0.1:{self._health}/readyz"))
            self._running.wait_until(self._admits)
        finally:
            self._stopping.set()
            copier.join()

    def stop(self) -> None:
        """Take it away."""
        assert self._running is not None
        self._running.stop()
        self._running = None

    @property
    def log(self) -> str:
        """The end of what it logged."""
        found = self._directory / "kueue.log"
        return "\n".join(found.read_text(errors="replace").splitlines()[-60:]) if found.exists() else ""

    def _objects(self) -> Iterator[Object]:
        helm = find_helm()
        if helm is None:
            raise NoKueue("no helm, which makes Kueue's objects from its chart")
        command = [str(helm), "template", "kueue", str(self._chart), f"--namespace={NAMESPACE}"]
        made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for one in yaml.safe_load_all(made):
            if not one or one["kind"] not in KINDS:
                continue
            if one["kind"] == "Service":
                if one["metadata"]["name"] != "kueue-webhook-service":
                    continue
                one["spec"] = {"type": "ExternalName", "externalName": "localhost"}
            if one["kind"] not in ("Secret", "Service"):  # the chart gives cluster-wide objects a namespace too
                one["metadata"].pop("namespace", None)
            for service in _services(one):
                service["port"] = self._port
            yield one

    def _configuration(self) -> Object:
        return {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "namespace": NAMESPACE,
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"port": self._port, "host": "127.0.0.1", "certDir": str(self._certificates)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {
                "enable": True,
                "webhookServiceName": "kueue-webhook-service",
                "webhookSecretName": SECRET,
            },
            "waitForPodsReady": {"timeout": "10m", "blockAdmission": False},
            "integrations": {
                "frameworks": ["batch/job", "pod"],
                "externalFrameworks": [FRAMEWORK],
            },
            "multiKueue": {"externalFrameworks": [{"name": FRAMEWORK}]},
        }

    def _copy_certificates(self) -> None:
        """Do what a kubelet does with a mounted Secret."""
        while not self._stopping.wait(0.2):
            try:
                secret = self._api.call("GET", f"api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}")
            except (ApiError, Api.UNREACHABLE):
                continue
            for name, text in (secret.get("data") or {}).items():
                path, content = self._certificates / name, base64.b64decode(text)
                if not path.exists() or path.read_bytes() != content:
                    unfinished = path.with_suffix(".new")
                    unfinished.write_bytes(content)
                    unfinished.rename(path)

    def _admits(self) -> bool:
        """Whether the API server reaches its webhooks."""
        metadata = {"name": "probe"}
        flavour = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": metadata, "spec": {}}
        try:
            self._api.create("resourceflavors", None, flavour, dryRun="All")
        except ApiError:
            return False
        return True


def _services(manifest: Object) -> Iterator[Object]:
    """Each place where an object names the Service of its webhooks."""
    configurations = [one["clientConfig"] for one in manifest.get("webhooks") or ()]
    conversion = (manifest.get("spec") or {}).get("conversion") or {}
    if "webhook" in conversion:
        configurations.append(conversion["webhook"]["clientConfig"])
    yield from (one["service"] for one in configurations if "service" in one)
