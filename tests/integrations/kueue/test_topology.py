# SPDX-License-Identifier: Apache-2.0
"""Jobs under the real Kueue that places pods by a Topology: each in one rack, and none where no rack has room."""

import copy
from collections.abc import Iterator

import pytest

from tests.cluster.support.jobs import wait_phase
from tests.cluster.support.kueue import topology_on_the_page
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_kueue import says
from tests.integrations.kueue.nodes import HOST, POOL, RACK, RACKS, Pods
from tests.integrations.kueue.test_kueue import create, pods, run, wait_job, workload
from tools.cluster.rest import Api, Object

pytestmark = pytest.mark.timeout(300, func_only=True)


@pytest.fixture
def racks(page: dict[str, Object], api: Api, namespace: str) -> Iterator[dict[str, Object]]:
    """The page's queue with quota for all nodes, which Kueue knows by their racks."""
    found, name = topology_on_the_page(), f"near-{namespace[-5:]}"
    found["ResourceFlavor"]["spec"]["topologyName"] = name
    for one in found.values():
        one["metadata"]["name"] = name
    api.create("topologies", None, found["Topology"])
    api.create("resourceflavors", None, found["ResourceFlavor"])
    resources = [{"name": "cpu", "nominalQuota": 8}, {"name": "memory", "nominalQuota": "32Gi"}]
    group = {"coveredResources": ["cpu", "memory"], "flavors": [{"name": name, "resources": resources}]}
    api.patch("clusterqueues", None, "research", {"spec": {"resourceGroups": [group]}})
    yield page
    api.delete("resourceflavors", None, name)
    api.delete("topologies", None, name)


def near(page: dict[str, Object], **how: str) -> dict[str, Object]:
    """The page with a job whose pods are to be near each other."""
    found = copy.deepcopy(page)
    found["DistributedTrainingJob"]["spec"]["scheduling"] = {"topology": how}
    return found


def racks_of(api: Api, namespace: str, name: str) -> set[str]:
    """Where the job's pods are."""
    found = [one for one in api.list("pods", namespace) if one["metadata"]["name"].startswith(f"{name}-")]
    return {RACKS[one["spec"]["nodeName"]] for one in found}


def fill(api: Api, namespace: str, node: str) -> None:
    """Somebody else's pod takes all of a node."""
    container = {"name": "it", "image": "it", "resources": {"requests": {"cpu": "2"}}}
    metadata = {"name": f"fills-{node}"}
    spec = {"nodeName": node, "containers": [container], "terminationGracePeriodSeconds": 0}
    api.create("pods", namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def test_a_job_gets_one_rack_or_waits(
    operator: OperatorProcess, api: Api, namespace: str, racks: dict[str, Object], on_nodes: Pods
) -> None:
    fill(api, namespace, "node-1")
    on_nodes.run("fills-node-1")
    page = near(racks, required=RACK)
    create(api, namespace, page, "first")
    run(api, namespace, on_nodes, "first")
    assert racks_of(api, namespace, "first") == {"b"}
    for pod in pods("first"):
        found = on_nodes.run(pod)["spec"]
        assert "podAffinity" not in found.get("affinity", {})
        assert found["nodeSelector"] == {POOL: "training", HOST: found["nodeName"]}
    create(api, namespace, page, "second")
    waiting = wait_job(api, namespace, "second", says("fit only"))
    assert waiting["status"]["message"].startswith("queued in team-a, position unknown; needs 3 cpu")

    api.delete("pods", namespace, "first-worker-0-0", uid=on_nodes.run("first-worker-0-0")["metadata"]["uid"])
    api.wait("pods", namespace, lambda found: "first-worker-0-0" not in found)
    again = api.wait("pods", namespace, lambda found: any(name.startswith("first-worker-0-") for name in found))
    replaced = next(name for name in again if name.startswith("first-worker-0-"))
    assert RACKS[on_nodes.run(replaced)["spec"]["nodeName"]] == "b"
    wait_phase(api, namespace, "Running", "first")

    operator.restart()
    api.delete("dtjobs", namespace, "first")
    run(api, namespace, on_nodes, "second")
    assert racks_of(api, namespace, "second") == {"b"}


def test_a_job_that_asks_for_no_rack_is_placed_too(
    operator: OperatorProcess, api: Api, namespace: str, racks: dict[str, Object], on_nodes: Pods
) -> None:
    create(api, namespace, racks, "anywhere")
    run(api, namespace, on_nodes, "anywhere")
    for pod in pods("anywhere"):
        found = on_nodes.run(pod)["spec"]
        assert found["nodeSelector"][HOST] == found["nodeName"]


def test_a_rack_that_is_preferred_and_full_does_not_keep_it_waiting(
    operator: OperatorProcess, api: Api, namespace: str, racks: dict[str, Object], on_nodes: Pods
) -> None:
    for node in ("node-1", "node-3"):
        fill(api, namespace, node)
        on_nodes.run(f"fills-{node}")
    create(api, namespace, near(racks, preferred=RACK), "split")
    run(api, namespace, on_nodes, "split")
    assert racks_of(api, namespace, "split") == {"a", "b"}


def test_without_a_topology_the_pods_own_affinity_brings_them_near(
    operator: OperatorProcess, api: Api, namespace: str, page: dict[str, Object], on_nodes: Pods
) -> None:
    create(api, namespace, near(page, required=RACK), "plain")
    run(api, namespace, on_nodes, "plain")
    assert len(racks_of(api, namespace, "plain")) == 1
    asked = workload(api, namespace, "plain")["spec"]["podSets"]
    assert not [one for one in asked if "topologyRequest" in one]
