# SPDX-License-Identifier: Apache-2.0
"""A node goes away: its kubelet is silent, its containers may run on, and its pods stay Terminating for ever."""

import pytest

from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.training_job import ids
from tests.e2e.jobs.support.until_told import until_told
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object


def on(node: str, *, strictly: bool) -> Object:
    """A template that wants this node, or prefers it."""
    if strictly:
        return {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}
    wish = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    return {"spec": {"affinity": {"nodeAffinity": {preferred: [{"weight": 100, "preference": wish}]}}}}


def ready(node: Object) -> str:
    """The status of a node's Ready condition."""
    return str(next(one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"))


def test_a_pod_stuck_on_a_node_that_is_gone_does_not_block_its_successor(
    new_job: NewJob, trainer_image: str, cluster: Cluster, api: Api, namespace: str
) -> None:
    if len(cluster.nodes) < 2:
        pytest.skip(f"{cluster.name} has one node: there is none for the successor")
    stays, goes = cluster.nodes[:2]
    roles = {
        "chief": {"template": on(stays, strictly=True)},
        "worker": {"replicas": 1, "template": on(goes, strictly=False)},
    }
    manifest = until_told(api, namespace, trainer_image, roles)
    manifest["spec"]["checkpoint"]["saveTimeoutSeconds"] = 5
    job = new_job(manifest)
    job.wait_up()
    saved = job.wait_checkpoint()
    before = job.pods()
    assert before["worker-0"]["spec"]["nodeName"] == goes
    cluster.stop_kubelet(goes)
    try:
        job.wait_replaced(before, "worker-0")
        report = job.wait_restored(saved)
        job.wait_step(report["restoredStep"] + 50)
        after = job.pods()
        assert after["worker-0"]["spec"]["nodeName"] == stays
        assert ids(after)["chief-0"] == ids(before)["chief-0"]
        # The old pod is still there, Terminating: nobody can say that its container has ended.
        old = job.kubectl("get", "pod", before["worker-0"]["metadata"]["name"], "-o", "json").stdout
        assert "deletionTimestamp" in old
        assert ready(api.get("nodes", None, goes)) == "Unknown"
        found = job.wait_up()
        assert found["status"]["restarts"]["causes"] == {"Disruption": 1}
        assert found["status"]["internal"]["incident"].get("charged", 0) == 0
    finally:
        cluster.start_kubelet(goes)
    job.wait_gone(before["worker-0"])
    api.wait_for("nodes", None, goes, lambda node: node and ready(node) == "True")
