# SPDX-License-Identifier: Apache-2.0
"""Where pods go, by flavours and admission checks."""

from typing import Any

import pytest

from dtjob.objects import kueue
from dtjob.plan.kueue import Conflict, flavours_of, placed, pod_sets
from dtjob.plan.seen.workload import Workload
from tests.unit.operator import builders
from tests.unit.operator.queued import SPOT

GPU = {"metadata": {"name": "gpu"}, "spec": {"nodeLabels": {"gpu": "a100"}, "tolerations": [{"key": "gpu"}]}}
FLAVOURS = {"spot": SPOT, "gpu": GPU}


def admitted(flavours: dict[str, str], *checks: Any, cluster_queue: str = "research", **assigned: Any) -> Workload:
    sets = [{"name": "worker", "flavors": flavours, **assigned}]
    status = {"admission": {"clusterQueue": cluster_queue, "podSetAssignments": sets}, "admissionChecks": list(checks)}
    return Workload({"metadata": {"name": "w"}, "spec": {"queueName": "team-a"}, "status": status})


def test_all_flavours_of_a_set_count_each_once() -> None:
    workload = admitted({"cpu": "spot", "memory": "spot", "nvidia.com/gpu": "gpu"})
    assert flavours_of(workload) == ("gpu", "spot")
    found = pod_sets(builders.job(), workload, FLAVOURS)["worker"]
    assert found["nodeSelector"] == {"pool": "spot", "gpu": "a100"}
    assert found["tolerations"] == [{"key": "spot", "operator": "Exists"}, {"key": "gpu"}]
    assert found["labels"] == {
        kueue.POD_SET: "worker", kueue.LOCAL_QUEUE: "team-a", kueue.CLUSTER_QUEUE: "research",
    }  # fmt: skip
    assert found["annotations"] == {kueue.WORKLOAD: "w"}


def test_admission_checks_add_to_the_placement_of_the_flavour() -> None:
    update = {
        "name": "worker",
        "nodeSelector": {"made": "now"},
        "annotations": {"a": "b"},
        "tolerations": [{"key": "new"}],
    }
    other = {"name": "chief", "nodeSelector": {"not": "mine"}}
    check = {"name": "nodes", "state": "Ready", "podSetUpdates": [other, update]}
    found = pod_sets(builders.job(), admitted({"cpu": "spot"}, check), FLAVOURS)["worker"]
    assert found["nodeSelector"] == {"pool": "spot", "made": "now"}
    assert found["annotations"]["a"] == "b"
    assert {"key": "new"} in found["tolerations"]


def test_two_values_for_a_node_label_are_a_conflict() -> None:
    check = {"name": "nodes", "podSetUpdates": [{"name": "worker", "nodeSelector": {"pool": "other"}}]}
    with pytest.raises(Conflict, match="admission check nodes pool=other, and it is spot already"):
        pod_sets(builders.job(), admitted({"cpu": "spot"}, check), FLAVOURS)


def test_a_place_in_a_topology_is_waited_for() -> None:
    found = pod_sets(builders.job(), admitted({}, topologyAssignment={"levels": ["rack"]}), {})["worker"]
    assert found["schedulingGates"] == [{"name": "kueue.x-k8s.io/topology"}]


@pytest.mark.parametrize("name", ["a.b", "A", "-a", "a" * 64, ""])
def test_a_name_that_is_no_label_is_left_out(name: str) -> None:
    found = pod_sets(builders.job(), admitted({}, cluster_queue=name), {})["worker"]
    assert kueue.CLUSTER_QUEUE not in found["labels"]


def test_a_pod_keeps_its_own_selectors_tolerations_and_labels() -> None:
    pod = builders.pod(builders.job(), "worker-0")
    pod["spec"] |= {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "mine"}]}
    mine = dict(pod["metadata"]["labels"])
    found = placed(pod, {"nodeSelector": {"pool": "spot"}, "tolerations": [{"key": "mine"}, {"key": "spot"}],
                         "labels": {"training.dtjob.dev/role": "x", "more": "y"}})  # fmt: skip
    assert found["spec"]["nodeSelector"] == {"disk": "ssd", "pool": "spot"}
    assert found["spec"]["tolerations"] == [{"key": "mine"}, {"key": "spot"}]
    assert found["metadata"]["labels"] == {**mine, "more": "y"}
    assert "schedulingGates" not in found["spec"]
    assert placed(pod, {}) == pod
