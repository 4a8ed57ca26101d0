# SPDX-License-Identifier: Apache-2.0
"""Kubeflow's Training Operator v1.9 with TFJob alone, as a process beside an API server.

It wants what its manifests make: a Secret for the certificates of its webhook and that webhook's configuration. The
configuration has no webhook here, so that no job waits for it. The Secret's content is a volume of its pod, which has
to be at `CERTIFICATES` before the operator is ready.
"""

import base64
import shutil
import ssl
import time
from pathlib import Path

from dtjob.local.processes.addresses import free_ports
from tools.cluster.control_plane import ControlPlane
from tools.cluster.program import START_TIMEOUT, Program, ProgramError, answers
from tools.cluster.rest import Api, Object

NAME = "training-operator"
NAMESPACE, SECRET = "kubeflow", "training-operator-webhook-cert"
WEBHOOKS = "validator.training-operator.kubeflow.org"
CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")
"""Both the program and controller-runtime's webhook server look there."""
DEFINITION = "tfjobs.kubeflow.org"
TUNED = ("--controller-threads=50", "--kube-api-qps=5000", "--kube-api-burst=5000")


def install(plane: ControlPlane, program: Path) -> None:
    """Put its definition, its Secret and its webhook's configuration onto the API server, once."""
    api = Api(plane.kubeconfig)
    plane.kubectl("apply", "--server-side", "-f", str(program.with_name("kubeflow.org_tfjobs.yaml")))
    api.wait_established(DEFINITION)
    api.create("namespaces", None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}}
    api.create("secrets", NAMESPACE, secret)
    version = "admissionregistration.k8s.io/v1"
    webhooks = {"apiVersion": version, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": WEBHOOKS}}
    api.create("validatingwebhookconfigurations", None, webhooks)


def start(plane: ControlPlane, program: Path, kubeconfig: Path, arguments: tuple[str, ...] = ()) -> Program:
    """Start it; it is ready when this returns. Raises ProgramError where it does not come up."""
    probe, webhook = free_ports(2)
    command = [
        str(program),
        f"--kubeconfig={kubeconfig}",
        "--enable-scheme=tfjob",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address=127.0.0.1:{probe}",
        f"--webhook-server-port={webhook}",
        *arguments,
    ]
    shutil.rmtree(CERTIFICATES, ignore_errors=True)  # another API server's, perhaps
    running = Program(NAME, command, plane.directory)
    try:
        _give_certificates(Api(plane.kubeconfig), running)
        running.wait_until(lambda: answers(f"http://127.0.0.1:{probe}/readyz", ssl.create_default_context()))
    except BaseException:
        running.stop()
        raise
    return running


def _give_certificates(api: Api, running: Program) -> None:
    """Write what it has put into its Secret to where a kubelet would mount that."""
    limit = time.monotonic() + START_TIMEOUT
    while not (data := api.get("secrets", NAMESPACE, SECRET).get("data")):
        if running.process.poll() is not None or time.monotonic() > limit:
            raise ProgramError(f"the Training Operator made no certificates:\n{running.last_lines()}")
        time.sleep(0.1)
    CERTIFICATES.mkdir(parents=True)
    for name, text in data.items():
        (CERTIFICATES / name).write_bytes(base64.b64decode(text))
