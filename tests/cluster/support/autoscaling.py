# SPDX-License-Identifier: Apache-2.0
"""What an HPA needs: kube-controller-manager's own controller for it, and the metrics API, in which the tests say how
busy the workers are."""

import json
import ssl
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from tools.cluster.control_plane import ControlPlane
from tools.cluster.program import Program
from tools.cluster.rest import Api, Object

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
SERVICE, NAMESPACE = "metrics", "kube-system"


class Autoscaling:
    """The controller and the metrics API in one cluster. Use as a context manager."""

    def __init__(self, cluster: ControlPlane, api: Api) -> None:
        self._cluster, self._api = cluster, api
        self.load = 0
        """Thousandths of a CPU that the selected pods use all together; each that runs takes an equal part."""
        self.asked: list[str] = []
        """The label selectors that were asked for."""

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        certificates = self._cluster.directory / "certificates"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        # The API server asks a Service of this kind for its name and port alone, as nothing here forwards its address.
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }
        self._api.create("services", NAMESPACE, service)
        self._api.call("POST", "apis/apiregistration.k8s.io/v1/apiservices", self._registration())
        command = [
            str(self._cluster.programs["kube-controller-manager"]),
            f"--kubeconfig={self._cluster.kubeconfig}",
            "--leader-elect=false",
            "--secure-port=0",
            "--controllers=horizontal-pod-autoscaler-controller",
            "--horizontal-pod-autoscaler-sync-period=1s",
            "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
            "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
            "--horizontal-pod-autoscaler-downscale-stabilization=1s",
        ]
        self._controller = Program("horizontal-pod-autoscaler", command, self._cluster.directory)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            print(self._controller.last_lines())
        self._controller.stop()
        self._api.call("DELETE", f"apis/apiregistration.k8s.io/v1/apiservices/{VERSION}.{GROUP}")
        self._api.delete("services", NAMESPACE, SERVICE)
        self._server.shutdown()
        self._server.server_close()

    def _registration(self) -> Object:
        port = self._server.server_address[1]
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
            },
        }

    def _answer(self, path: str, query: dict[str, list[str]]) -> Object:
        if not path.endswith("/pods"):
            resource = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["list"]}
            return {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": f"{GROUP}/{VERSION}",
                "resources": [resource],
            }
        namespace, selector = path.split("/")[-2], query.get("labelSelector", [""])[0]
        self.asked.append(selector)
        pods = [one for one in self._api.list("pods", namespace, selector) if _runs(one)]
        items = [self._metrics(one, self.load // len(pods)) for one in pods]
        return {"kind": "PodMetricsList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}

    def _metrics(self, pod: Object, used: int) -> Object:
        names = [one["name"] for one in pod["spec"]["containers"]]
        usage = [{"name": name, "usage": {"cpu": f"{used // len(names)}m", "memory": "1Mi"}} for name in names]
        metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "labels")}
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"metadata": metadata, "timestamp": moment, "window": "1s", "containers": usage}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                body = json.dumps(outer._answer(url.path, parse_qs(url.query))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Not on the test's output."""

        return Handler


def _runs(pod: Object) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"))
