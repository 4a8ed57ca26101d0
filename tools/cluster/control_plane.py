# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane on loopback, without nodes: etcd, kube-apiserver and kube-controller-manager.

    with ControlPlane(binaries.find()) as cluster:      # ready in about 6 seconds
        cluster.kubectl("get", "namespaces")
        os.environ["KUBECONFIG"] = str(cluster.kubeconfig)

    python -m tools.cluster.control_plane               # the same by hand, until Ctrl-C

Everything lives in one temporary directory. Nothing is left behind: children die with this process (PR_SET_PDEATHSIG),
and a small janitor process removes the directory when this process ends without having done so itself.
"""

import base64
import contextlib
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from dtjob.local.processes.addresses import free_ports
from tools.cluster import kubectl
from tools.cluster.program import Program, answers

_CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "endpointslice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolumeclaim-protection-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)
"""Only those that our objects need: the others would only use up the machine."""

LOST_NODE_SECONDS = 20
"""Half of what kube-controller-manager takes by itself, so that tests of a lost node wait less."""

_JANITOR = """
import os, shutil, sys, time
sys.stdin.read()  # until the pipe's other end is gone, however that came
while os.path.exists(sys.argv[1]):
    shutil.rmtree(sys.argv[1], ignore_errors=True)  # etcd may still be dying and writing
    time.sleep(0.05)
"""


@dataclass(frozen=True)
class Options:
    """How a control plane differs from the smallest one, for a cluster with a node."""

    address: str = "127.0.0.1"
    """Where the API server listens."""
    whole: bool = False
    """Run every controller, and the scheduler. A node that says nothing is then gone after LOST_NODE_SECONDS."""
    controller_arguments: tuple[str, ...] = ()
    """More arguments for kube-controller-manager. `--controllers` adds to those that it runs."""
    scheduler_arguments: tuple[str, ...] | None = None
    """More arguments for kube-scheduler, which then runs without the other controllers too."""
    users: tuple[tuple[str, str], ...] = ()
    """More users, each with its group."""
    api_arguments: tuple[str, ...] = ()
    """More arguments for kube-apiserver."""
    etcd_arguments: tuple[str, ...] = ()
    """More arguments for etcd."""
    controllers: tuple[str, ...] = _CONTROLLERS
    """Those that run where not every one does."""


class ControlPlane:
    """One cluster. `programs` are the paths that `tools.binaries.find()` returns.

    Attributes: `kubeconfig` (an administrator's, CA verified), `server` and `etcd` (URLs), `port`, `directory` (with
    the logs).
    """

    def __init__(self, programs: dict[str, Path], options: Options = Options()) -> None:
        self.programs = programs
        self.options = options
        self.directory = Path(tempfile.mkdtemp(prefix="dtjob-cluster-"))
        self.kubeconfig = self.directory / "kubeconfig"
        self._users = (("admin", "system:masters"), *options.users)
        self._tokens = {user: secrets.token_hex(16) for user, _ in self._users}
        self._running: dict[str, Program] = {}
        self._janitor = subprocess.Popen(
            [sys.executable, "-c", _JANITOR, str(self.directory)], stdin=subprocess.PIPE, start_new_session=True
        )

    def __enter__(self) -> Self:
        try:
            self._start_etcd()
            (self.port,) = free_ports(1)
            self.server = f"https://{self.options.address}:{self.port}"
            lines = (f"{self._tokens[user]},{user},{user},{group}\n" for user, group in self._users)
            (self.directory / "tokens.csv").write_text("".join(lines))
            self.start_api()
            self._start_controllers()
            if self.options.whole or self.options.scheduler_arguments is not None:
                self._start_scheduler()
            self.kubectl("wait", "--for=create", "serviceaccount/default", "-n", "default", "--timeout=60s")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop everything and remove the directory. The API server goes before its etcd: without it, it hangs."""
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            if name in self._running:
                self._running.pop(name).stop()
        shutil.rmtree(self.directory, ignore_errors=True)
        self._janitor.communicate()  # closes its input: it looks whether anything is left, and ends

    def program(self, name: str) -> Program:
        """One of its programs, such as kube-apiserver. It may be killed and started again."""
        return self._running[name]

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator. With `check`, a failure raises AssertionError with what kubectl said."""
        return kubectl.run(self.programs["kubectl"], self.kubeconfig, *arguments, stdin=stdin, check=check)

    def stop_api(self) -> None:
        """Take the API server away, as in an outage; what etcd holds stays."""
        self._running.pop("kube-apiserver").stop()

    def start_api(self) -> None:
        """Start the API server, on the same address as before, and wait until it is ready."""
        server = Program("kube-apiserver", self._api_command(), self.directory)
        self._running["kube-apiserver"] = server
        server.wait_until(self._api_ready)

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
        self.etcd = client
        command = [
            str(self.programs["etcd"]),
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # the data does not outlive the tests
            "--log-level=warn",
            *self.options.etcd_arguments,
        ]
        etcd = self._running["etcd"] = Program("etcd", command, self.directory)
        etcd.wait_until(lambda: answers(f"{client}/health"))

    def _api_command(self) -> list[str]:
        key = self.directory / "certificates" / "apiserver.key"  # made by the server, before it reads it as signing key
        return [
            str(self.programs["kube-apiserver"]),
            f"--etcd-servers={self.etcd}",
            f"--secure-port={self.port}",
            f"--bind-address={self.options.address}",
            f"--advertise-address={self.options.address}",
            f"--cert-dir={key.parent}",
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--token-auth-file={self.directory / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--watch-cache=true",
            "--profiling=false",
            *self.options.api_arguments,
        ]

    def _api_ready(self) -> bool:
        """Whether /readyz says ok over verified TLS; writes the kubeconfig once there is a certificate."""
        certificate = self.directory / "certificates" / "apiserver.crt"
        if not certificate.exists():
            return False
        try:
            context = ssl.create_default_context(cafile=str(certificate))
        except ssl.SSLError:  # half written
            return False
        if not answers(f"{self.server}/readyz", context, self._tokens["admin"]):
            return False
        if not self.kubeconfig.exists():
            self.kubeconfig.write_text(self.kubeconfig_for("admin"))
        return True

    def kubeconfig_for(self, user: str) -> str:
        """The text of a kubeconfig for one of the users. Only once the API server is up: it holds its certificate."""
        certificate = (self.directory / "certificates" / "apiserver.crt").read_bytes()
        cluster = {"server": self.server, "certificate-authority-data": base64.b64encode(certificate).decode()}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": user, "user": {"token": self._tokens[user]}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
                "current-context": "test",
            }
        )

    def _start_controllers(self) -> None:
        command = [
            str(self.programs["kube-controller-manager"]),
            f"--kubeconfig={self.kubeconfig}",
            f"--root-ca-file={self.directory / 'certificates' / 'apiserver.crt'}",
            f"--service-account-private-key-file={self.directory / 'certificates' / 'apiserver.key'}",
            "--use-service-account-credentials",
            "--leader-elect=false",
            "--secure-port=0",
            f"--controllers={'*' if self.options.whole else ','.join(self.options.controllers)}",
            "--concurrent-gc-syncs=4",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            *([f"--node-monitor-grace-period={LOST_NODE_SECONDS}s"] if self.options.whole else []),
            *self.options.controller_arguments,
        ]
        self._running["kube-controller-manager"] = Program("kube-controller-manager", command, self.directory)

    def _start_scheduler(self) -> None:
        command = [
            str(self.programs["kube-scheduler"]),
            f"--kubeconfig={self.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            *(self.options.scheduler_arguments or ()),
        ]
        self._running["kube-scheduler"] = Program("kube-scheduler", command, self.directory)


def main() -> None:
    """Run a cluster until Ctrl-C."""
    from tools import binaries

    with ControlPlane(binaries.find()) as cluster:
        print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
