"""A real Kubernetes control plane on loopback, without nodes: etcd, kube-apiserver and kube-controller-manager.

    with ControlPlane(binaries.find()) as cluster:      # ready in about 6 seconds
        cluster.kubectl("get", "namespaces")
        os.environ["KUBECONFIG"] = str(cluster.kubeconfig)

    python -m tests.cluster.control_plane               # the same by hand, until Ctrl-C

Everything lives in one temporary directory. Nothing is left behind: children die with this process (PR_SET_PDEATHSIG),
and a small janitor process removes the directory when this process ends without having done so itself.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

START_TIMEOUT = 120.0
"""Seconds that one program may take until it answers; a busy machine needs more than the usual few."""
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)  # loaded before any fork: a child may not import
_CONTROLLERS = (
    "endpointslice-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
)
"""Only those that our objects need: the others would only use up the machine."""
_JANITOR = """
import os, shutil, sys, time
sys.stdin.read()  # until the pipe's other end is gone, however that came
while os.path.exists(sys.argv[1]):
    shutil.rmtree(sys.argv[1], ignore_errors=True)  # etcd may still be dying and writing
    time.sleep(0.05)
"""


class ControlPlaneError(Exception):
    """A program did not come up; the message has the end of its log."""


def _die_with_parent() -> None:
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Program:
    """One running program with its log file."""

    def __init__(self, name: str, command: list[str], directory: Path) -> None:
        self.name = name
        self.log = directory / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                start_new_session=True,  # a Ctrl-C at the terminal is for pytest, which then stops us in order
                preexec_fn=_die_with_parent,
            )

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Return once `ready` says so. Raises ControlPlaneError when the program ends or takes too long."""
        limit = time.monotonic() + START_TIMEOUT
        while not ready():
            if self.process.poll() is not None:
                raise ControlPlaneError(f"{self.name} ended with {self.process.returncode}:\n{self.last_lines()}")
            if time.monotonic() > limit:
                raise ControlPlaneError(f"{self.name} was not ready after {START_TIMEOUT:.0f} s:\n{self.last_lines()}")
            time.sleep(0.05)

    def last_lines(self) -> str:
        """The end of the log, for messages."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])

    def stop(self) -> None:
        """SIGTERM and, as open watches hold it up, SIGKILL after a second; to the process group. Waits for its end."""
        for number, patience in ((signal.SIGTERM, 1.0), (signal.SIGKILL, None)):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            try:
                self.process.wait(patience)
                return
            except subprocess.TimeoutExpired:
                continue


class ControlPlane:
    """One cluster. `programs` are the paths that `tests.tools.binaries.find()` returns.

    Attributes: `kubeconfig` (an administrator's, CA verified), `server` (URL), `directory` (with the logs).
    """

    def __init__(self, programs: dict[str, Path], controllers: bool = True) -> None:
        self.programs = programs
        self.controllers = controllers
        self.directory = Path(tempfile.mkdtemp(prefix="dtjob-cluster-"))
        self.kubeconfig = self.directory / "kubeconfig"
        self.token = secrets.token_hex(16)
        self._running: dict[str, Program] = {}
        self._janitor = subprocess.Popen(
            [sys.executable, "-c", _JANITOR, str(self.directory)], stdin=subprocess.PIPE, start_new_session=True
        )

    def __enter__(self) -> Self:
        try:
            self._start_etcd()
            self._api_port = _free_port()
            self.server = f"https://127.0.0.1:{self._api_port}"
            (self.directory / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
            self.start_api()
            if self.controllers:
                self._start_controllers()
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
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            if name in self._running:
                self._running.pop(name).stop()
        shutil.rmtree(self.directory, ignore_errors=True)
        self._janitor.communicate()  # closes its input: it looks whether anything is left, and ends

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as administrator. With `check`, a failure raises AssertionError with what kubectl said."""
        done = subprocess.run(
            [str(self.programs["kubectl"]), *arguments],
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.directory)},
            input=stdin,
            capture_output=True,
            text=True,
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done

    def stop_api(self) -> None:
        """Take the API server away, as in an outage; what etcd holds stays."""
        self._running.pop("kube-apiserver").stop()

    def start_api(self) -> None:
        """Start the API server, on the same address as before, and wait until it is ready."""
        server = Program("kube-apiserver", self._api_command(), self.directory)
        self._running["kube-apiserver"] = server
        server.wait_until(self._api_ready)

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{_free_port()}" for _ in range(2))
        self._etcd = client
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
        ]
        etcd = self._running["etcd"] = Program("etcd", command, self.directory)
        etcd.wait_until(lambda: _answers(f"{client}/health"))

    def _api_command(self) -> list[str]:
        key = self.directory / "certificates" / "apiserver.key"  # made by the server, before it reads it as signing key
        return [
            str(self.programs["kube-apiserver"]),
            f"--etcd-servers={self._etcd}",
            f"--secure-port={self._api_port}",
            "--bind-address=127.0.0.1",
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
        if not _answers(f"{self.server}/readyz", context, self.token):
            return False
        if not self.kubeconfig.exists():
            self.kubeconfig.write_text(self._kubeconfig_text(certificate.read_bytes()))
        return True

    def _kubeconfig_text(self, certificate: bytes) -> str:
        cluster = {"server": self.server, "certificate-authority-data": base64.b64encode(certificate).decode()}
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "admin", "user": {"token": self.token}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
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
            f"--controllers={','.join(_CONTROLLERS)}",
            "--concurrent-gc-syncs=4",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]
        self._running["kube-controller-manager"] = Program("kube-controller-manager", command, self.directory)


def _answers(url: str, context: ssl.SSLContext | None = None, token: str = "") -> bool:
    """Whether `url` answers 200."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=context),  # loopback, whatever the proxy
    )
    try:
        with opener.open(request, timeout=5) as answer:
            return int(answer.status) == 200
    except (urllib.error.URLError, OSError):
        return False


def main() -> None:
    """Run a cluster until Ctrl-C."""
    from tests.tools import binaries

    with ControlPlane(binaries.find()) as cluster:
        print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
