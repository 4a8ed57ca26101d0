# SPDX-License-Identifier: Apache-2.0
"""One API server for all sides, with a scheduler and with kwok, which lets pods run without containers."""

import base64
import json
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Self

import yaml

from benchmarks.operators.audit import AuditLog, policy
from benchmarks.operators.jobs import NAMESPACE
from benchmarks.peers import training_operator
from benchmarks.peers.bare_loop import AT_ONCE, Call, Calls
from tools.cluster.control_plane import ControlPlane, Options
from tools.cluster.program import Program
from tools.cluster.rest import Api, Object, path_of

ROOT = Path(__file__).resolve().parents[2]
PEER = training_operator.NAME
USERS = ("dtjob", "tfjob", "bare")
"""Whose calls are noted."""
NODES = 10
_CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)
"""Without the one of EndpointSlices, which would work for the Service of each of TFJob's pods."""
_MADE = ("services", "configmaps", "networkpolicies", "events")
_AT_A_TIME = "200"
"""So few objects are deleted in one call that a busy machine answers it in time."""
_ROOM = f"--quota-backend-bytes={16 << 30}"
"""For every version of large objects until etcd is compacted: TFJob's pods of a large job have 60 KB each."""


class Testbed:
    """The API server and what runs beside it. `api` calls it as administrator, `audit` is its log of the operators.
    `pod_network` is the first address of pods and the size of their network."""

    def __init__(self, programs: dict[str, Path], pod_network: str = "10.128.0.1/9") -> None:
        self.programs, self._pod_network = programs, pod_network
        self._numbers = 0
        self._beside: list[Program] = []

    def __enter__(self) -> Self:
        options = Options(users=_users(), controllers=_CONTROLLERS, etcd_arguments=(_ROOM,))
        self.plane = _Audited(self.programs, options)
        self.plane.__enter__()
        try:
            self.api, self.audit = Api(self.plane.kubeconfig), AuditLog(self.plane.audit_log)
            self._install()
            self._start_beside()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop everything."""
        for program in reversed(self._beside):
            program.stop()
        self.plane.stop()

    def kubeconfig_of(self, user: str) -> Path:
        """A kubeconfig of one of USERS."""
        path = self.plane.directory / f"kubeconfig-{user}"
        path.write_text(self.plane.kubeconfig_for(user))
        return path

    def calls(self, calls: list[Call], at_once: int = AT_ONCE, user: str | None = None) -> Calls:
        """These calls, ready to be made all at once by a process of their own, as administrator or one of USERS."""
        self._numbers += 1
        kubeconfig = self.kubeconfig_of(user) if user else self.plane.kubeconfig
        return Calls(kubeconfig, calls, self.plane.directory / f"calls-{self._numbers}", at_once)

    def stored_bytes(self) -> Counter[str]:
        """Bytes that etcd holds as live keys and their values for the namespace's objects, by resource."""
        found: Counter[str] = Counter()
        start, end = b"/registry/", b"/registry0"
        while True:
            query = {"key": _text(start), "range_end": _text(end), "limit": 200}
            request = urllib.request.Request(f"{self.plane.etcd}/v3/kv/range", json.dumps(query).encode())
            with urllib.request.urlopen(request) as answer:
                page = json.load(answer)
            for pair in page.get("kvs", ()):
                start = base64.b64decode(pair["key"])
                if f"/{NAMESPACE}/" in start.decode():
                    found[start.decode().split("/")[-3]] += len(start) + len(base64.b64decode(pair["value"]))
            if not page.get("more"):
                return found
            start += b"\0"

    def clear(self) -> None:
        """Remove all jobs and what was made for them; return when nothing of it is there."""
        resources = ("dtjobs", *(("tfjobs",) if PEER in self.programs else ()), "pods", *_MADE)
        for resource in resources:
            self._delete_all(resource, **({"gracePeriodSeconds": 0} if resource == "pods" else {}))
        self.wait_gone("pods")

    def delete_jobs(self, resource: str) -> None:
        """Delete an operator's jobs while it runs; return when the garbage collector has removed their pods."""
        self._delete_all(resource)
        for each in ("pods", "services"):
            self.wait_gone(each)

    def _delete_all(self, resource: str, **options: int) -> None:
        """Delete every object of this kind, a page of them in each call; return when the last call has found none."""
        body = {"propagationPolicy": "Background", **options}
        while self.api.call("DELETE", path_of(resource, NAMESPACE), body, {"limit": _AT_A_TIME}).get("items"):
            time.sleep(0.1)

    def wait_gone(self, resource: str) -> None:
        """Return when there is none of it."""
        while self.api.call("GET", path_of(resource, NAMESPACE), None, {"limit": "1"})["items"]:
            time.sleep(0.1)

    def _install(self) -> None:
        self.plane.kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
        self.api.wait_established()
        if PEER in self.programs:
            training_operator.install(self.plane, self.programs[PEER])
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.api.create("namespaces", None, namespace)
        self.plane.kubectl("wait", "--for=create", "serviceaccount/default", "-n", NAMESPACE, "--timeout=60s")

    def _start_beside(self) -> None:
        kwok = self.programs["kwok"]
        stages = [str(kwok.with_name(f"{name}.yaml")) for name in ("node-initialize", "pod-ready", "pod-delete")]
        commands = {
            "kwok": [
                str(kwok),
                f"--kubeconfig={self.plane.kubeconfig}",
                "--manage-all-nodes=true",
                f"--cidr={self._pod_network}",
                *(f"--config={stage}" for stage in stages),
            ],
            "kube-scheduler": [
                str(self.programs["kube-scheduler"]),
                f"--kubeconfig={self.plane.kubeconfig}",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=5000",
                "--kube-api-burst=5000",
            ],
        }
        for name, command in commands.items():
            self._beside.append(Program(name, command, self.plane.directory))
        for number in range(NODES):
            name = self.api.create("nodes", None, _node(number))["metadata"]["name"]
            # An admission plugin says that it is not ready, and the controller that takes that back is not here.
            self.api.patch("nodes", None, name, {"spec": {"taints": None}})
        for program in self._beside:
            program.wait_until(self._nodes_ready)

    def _nodes_ready(self) -> bool:
        return all(
            any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", ()))
            for node in self.api.list("nodes")
        )


class _Audited(ControlPlane):
    """Notes each call of the operators."""

    @property
    def audit_log(self) -> Path:
        return self.directory / "audit.log"

    def _api_command(self) -> list[str]:
        file = self.directory / "audit-policy.yaml"
        file.write_text(yaml.safe_dump(policy(USERS)))
        return [
            *super()._api_command(),
            f"--audit-policy-file={file}",
            f"--audit-log-path={self.audit_log}",
            "--audit-log-maxsize=10000",
            "--delete-collection-workers=8",
        ]


def _users() -> tuple[tuple[str, str], ...]:
    return tuple((user, "system:masters") for user in USERS)


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()


def _node(number: int) -> Object:
    room = {"cpu": "100000", "memory": "1000Ti", "pods": "100000"}
    metadata = {"name": f"node-{number}", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    status = {"capacity": room, "allocatable": room}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
