# SPDX-License-Identifier: Apache-2.0
"""A job that the real MultiKueue sends to another cluster: two API servers, each with Kueue, the operator and nodes."""

import base64
import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.support.jobs import wait_phase
from tests.cluster.support.kueue import GROUP, VERSION, on_the_page
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_kueue import has
from tests.integrations.kueue.conftest import control_plane, make
from tests.integrations.kueue.manager import NAMESPACE, Kueue
from tests.integrations.kueue.nodes import Pods
from tests.integrations.kueue.test_kueue import create, pods, run, wait_job, workload
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, Object

pytestmark = pytest.mark.timeout(300, func_only=True)
CONTROLLER = "kueue.x-k8s.io/multikueue"


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[ControlPlane]:
    """The cluster that jobs are sent to, with Kueue."""
    with control_plane() as running:
        kueue = Kueue(running)
        kueue.install()
        kueue.start()
        yield running
        kueue.stop()


@pytest.fixture
def there(elsewhere: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Api]:
    """The same namespace and queue in the other cluster, and an operator."""
    api = Api(elsewhere.kubeconfig)
    api.create("namespaces", None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    api.wait_for("serviceaccounts", namespace, "default", lambda account: account is not None)
    make(api, namespace, on_the_page())
    directory = tmp_path / "elsewhere"
    directory.mkdir()
    operator = OperatorProcess(elsewhere.kubeconfig, namespace, directory / "operator.log")
    operator.start()
    yield api
    operator.kill()
    print(operator.log.read_text())


@pytest.fixture
def page_elsewhere(page: dict[str, Object], api: Api, elsewhere: ControlPlane) -> dict[str, Object]:
    """The page's queue, out of which jobs go to the other cluster."""
    config = base64.b64encode(elsewhere.kubeconfig.read_bytes()).decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "elsewhere"}, "data": {"kubeconfig": config}}
    api.create("secrets", NAMESPACE, secret)
    source = {"kubeConfig": {"location": "elsewhere", "locationType": "Secret"}}
    api.create("multikueueclusters", None, _object("MultiKueueCluster", {"clusterSource": source}))
    api.create("multikueueconfigs", None, _object("MultiKueueConfig", {"clusters": ["elsewhere"]}))
    parameters = {"apiGroup": GROUP, "kind": "MultiKueueConfig", "name": "elsewhere"}
    check = {"controllerName": CONTROLLER, "parameters": parameters}
    api.create("admissionchecks", None, _object("AdmissionCheck", check))
    strategy = {"admissionChecks": [{"name": "elsewhere"}]}
    api.patch("clusterqueues", None, "research", {"spec": {"admissionChecksStrategy": strategy}})
    api.wait_for("clusterqueues", None, "research", has("Active", "True"))
    found = copy.deepcopy(page)
    found["DistributedTrainingJob"]["spec"]["managedBy"] = CONTROLLER
    return found


def _object(kind: str, spec: Object) -> Object:
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": "elsewhere"}, "spec": spec}


def test_a_job_is_sent_to_another_cluster_and_its_status_comes_back(
    operator: OperatorProcess, api: Api, namespace: str, page_elsewhere: dict[str, Object], there: Api
) -> None:
    on_nodes = Pods(there, namespace)
    create(api, namespace, page_elsewhere, "sent")
    run(there, namespace, on_nodes, "sent")
    wait_phase(api, namespace, "Running", "sent")
    assert api.list("pods", namespace) == []
    assert has("Admitted", "True")(workload(api, namespace, "sent"))
    operator.restart()
    create(api, namespace, page_elsewhere, "next")  # there is quota for one, here and there
    workload(api, namespace, "next", has("QuotaReserved", "False"))
    for pod in pods("sent"):
        on_nodes.succeed(pod)
    wait_phase(api, namespace, "Succeeded", "sent")
    workload(api, namespace, "sent", has("Finished", "True", "Succeeded"))
    there.wait_for("dtjobs", namespace, "sent", lambda found: found is None)
    assert wait_job(api, namespace, "sent", lambda found: found)["status"]["phase"] == "Succeeded"

    run(there, namespace, on_nodes, "next")
    there.patch("clusterqueues", None, "research", {"spec": {"stopPolicy": "HoldAndDrain"}})
    there.wait("pods", namespace, lambda found: not found)  # it is sent anew when there is quota again
    there.patch("clusterqueues", None, "research", {"spec": {"stopPolicy": "None"}})
    api.wait("workloads", namespace, lambda found: any(has("Admitted", "True")(one) for one in found.values()), 120)
    wait_phase(api, namespace, "Running", "next")
    api.delete("dtjobs", namespace, "next")
    there.wait("dtjobs", namespace, lambda found: not found)
    there.wait("workloads", namespace, lambda found: not found)
