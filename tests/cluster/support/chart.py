# SPDX-License-Identifier: Apache-2.0
"""helm, the chart, and the operator run as the chart would have it: its arguments, its service account, its rights.

There is no kubelet here, so the container's process runs beside the cluster: with the Deployment's own arguments, and
with a token of the release's service account in place of the one that a pod would find mounted.
"""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from dtjob.local.processes.addresses import free_ports
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import DEFAULT_TIMEOUT, Api, Object

CHART = Path(__file__).resolve().parents[3] / "helm" / "dtjob"
NAMESPACE = "dtjob-system"
RELEASE = "dtjob"
MONITORING = tuple(
    f"--api-versions=monitoring.coreos.com/v1/{kind}" for kind in ("ServiceMonitor", "PodMonitor", "PrometheusRule")
)
"""Options of `helm template` for a cluster with the definitions of the Prometheus operator."""
USER = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
CLAIM = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
"""The template of a claim."""
STRANGERS = {
    "Service": "services",
    "NetworkPolicy": "networkpolicies",
    "ConfigMap": "configmaps",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Pod": "pods",
}
"""Kinds that a job makes, with their resources."""
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata", "users": [USER]}, {"level": "None"}],
}


class AuditedControlPlane(ControlPlane):
    """Notes each call of the chart's service account, and lets nobody set a blocking owner reference without rights."""

    _forgotten = 0

    @property
    def _audit_log(self) -> Path:
        return self.directory / "audit.log"

    def _audited(self) -> list[str]:
        return self._audit_log.read_text().splitlines() if self._audit_log.exists() else []

    def forget_calls(self) -> None:
        """Leave what was called until now out of `calls`."""
        self._forgotten = len(self._audited())

    def _api_command(self) -> list[str]:
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(yaml.safe_dump(_POLICY))
        return [
            *super()._api_command(),
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self._audit_log}",
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        ]

    def calls(self) -> Iterator[tuple[str, str, str, bool]]:
        """Group, resource (with subresource), verb and whether it was allowed, of each call answered so far.

        Allowed by the roles: admission may refuse with 403 what they allow. OwnerReferencesPermissionEnforcement does
        for up to 30 s after a CRD was made, until it looks for new kinds again (seen).
        """
        for line in self._audited()[self._forgotten :]:
            event = json.loads(line)
            where = event.get("objectRef")
            if where:  # else it is discovery, which everybody may do
                resource = "/".join(filter(None, (where["resource"], where.get("subresource"))))
                allowed = event["annotations"]["authorization.k8s.io/decision"] == "allow"
                yield where.get("apiGroup", ""), resource, event["verb"], allowed

    def callers(self) -> set[str]:
        """What the callers said that they are (User-Agent)."""
        return {json.loads(line)["userAgent"] for line in self._audited()[self._forgotten :]}


class HasKubeconfig(Protocol):
    """A cluster of any kind."""

    kubeconfig: Path


class Helm:
    """helm with one kubeconfig, and nothing of the user's own configuration."""

    def __init__(self, program: Path, cluster: HasKubeconfig, home: Path) -> None:
        self._program = program
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("HELM_")},
            "KUBECONFIG": str(cluster.kubeconfig),
            "HOME": str(home),
            **{f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")},
        }

    def command(self, *arguments: str) -> list[str]:
        """The command line, in the release's namespace."""
        return [str(self._program), "--namespace", NAMESPACE, *arguments]

    def __call__(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run helm. With `check`, a failure raises AssertionError with what helm said."""
        done = subprocess.run(self.command(*arguments), env=self.environment, capture_output=True, text=True)
        if check and done.returncode:
            raise AssertionError(f"helm {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done


class InstalledOperator(OperatorProcess):
    """The process of the release's Deployment."""

    def __init__(self, cluster: ControlPlane, api: Api, directory: Path, instead: tuple[str, ...] = ()) -> None:
        """`instead` are options in place of the Deployment's: two of its pods would share this machine's ports."""
        self._cluster, self._api, self._instead = cluster, api, instead
        self._kubeconfig = directory / "kubeconfig"
        self.log = directory / "operator.log"
        self._process = None

    def start(self) -> None:
        """Start it as the Deployment and the service account are now."""
        container = self.container()
        self._arguments = [*container["args"], *self._instead, f"--kubeconfig={self.kubeconfig()}"]
        super().start()

    def container(self) -> Object:
        """The Deployment's container."""
        found = self._cluster.kubectl("get", "deployment", RELEASE, f"--namespace={NAMESPACE}", "--output=json")
        return dict(json.loads(found.stdout)["spec"]["template"]["spec"]["containers"][0])

    def kubeconfig(self) -> Path:
        """A kubeconfig with a fresh token of the service account and no other right."""
        request: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"api/v1/namespaces/{NAMESPACE}/serviceaccounts/{RELEASE}/token"
        token = self._api.call("POST", path, request)["status"]["token"]
        config: dict[str, Any] = yaml.safe_load(self._cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        self._kubeconfig.write_text(yaml.safe_dump(config))
        return self._kubeconfig


@dataclass(frozen=True)
class Ports:
    """Where the release's operator answers on loopback."""

    liveness: int
    metrics: int

    def settings(self) -> str:
        """As helm's --set takes it."""
        return f"operator.livenessPort={self.liveness},metrics.port={self.metrics}"

    def get(self, port: int, path: str) -> str:
        """What it says there."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            assert answer.status == 200
            return str(answer.read().decode())

    def samples(self) -> dict[str, float]:
        """Its metrics: each sample with its labels, and its value."""
        lines = (line for line in self.get(self.metrics, "/metrics").splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def install(helm: Helm, api: Api, *values: str, chart: Path = CHART, verb: str = "install") -> Ports:
    """Install or upgrade the release, with ports that are free."""
    ports = Ports(*free_ports(2))
    settings = (ports.settings(), "operator.leaderElection.leaseSeconds=9", *values)
    helm(verb, RELEASE, str(chart), "--set", ",".join(settings))
    api.wait_established()
    return ports


def objects(cluster: AuditedControlPlane, kinds: str, *options: str) -> dict[str, Object]:
    """The objects of the release, by `Kind/name`."""
    selector = f"app.kubernetes.io/instance={RELEASE}"
    found = cluster.kubectl("get", kinds, f"--selector={selector}", "--output=json", *options)
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in json.loads(found.stdout)["items"]}


def granted(cluster: AuditedControlPlane) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all that the release's roles allow the operator."""
    found = objects(cluster, "clusterroles,roles", "--all-namespaces")
    roles = {name: role for name, role in found.items() if not name.endswith(("-edit", "-view"))}  # users' own
    return {
        (group, resource, verb)
        for role in roles.values()
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def says(words: str) -> Callable[[Object | None], bool]:
    """A condition for `Api.wait_for`: the status has these words somewhere."""
    return lambda found: words in json.dumps((found or {}).get("status"))


def wait_until(holds: Callable[[], bool], what: str, timeout: float = DEFAULT_TIMEOUT) -> None:
    """Return once it holds, where there is nothing to watch. Raises AssertionError where that takes too long."""
    limit = time.monotonic() + timeout
    while not holds():
        assert time.monotonic() < limit, f"not after {timeout:.0f} s: {what}"
        time.sleep(0.1)


def stranger(kind: str, name: str, namespace: str) -> Object:
    """An object of somebody else under a name that a job wants."""
    version = "networking.k8s.io/v1" if kind == "NetworkPolicy" else "v1"
    spec: dict[str, Object] = {
        "Service": {"spec": {"ports": [{"port": 80}]}},
        "NetworkPolicy": {"spec": {"podSelector": {}}},
        "ConfigMap": {},
        "PersistentVolumeClaim": {"spec": CLAIM["spec"]},
        "Pod": {"spec": {"containers": [{"name": "a", "image": "b"}]}},
    }
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **spec[kind]}


def meddle(api: Api, namespace: str) -> None:
    """Somebody changes the Service and the NetworkPolicy of the job digits, twice each, and they are repaired."""
    for kind, spec in {"services": {"selector": {"a": "b"}}, "networkpolicies": {"ingress": [{}]}}.items():
        right = api.get(kind, namespace, "digits")["spec"]
        for _ in range(2):
            api.patch(kind, namespace, "digits", {"spec": spec})
            api.wait_for(kind, namespace, "digits", lambda found, right=right: found and found["spec"] == right)
