# SPDX-License-Identifier: Apache-2.0
"""Tolerations of a lost node: ours where the user has none."""

from typing import Any

import pytest

from dtjob.objects.pod.placement import with_node_loss
from dtjob.objects.pod.pod import pod
from tests.unit.operator import builders

NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def ours(taint: str) -> dict[str, Any]:
    return {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}


def test_a_pod_leaves_a_lost_node_after_half_a_minute() -> None:
    tolerations = pod(builders.job(), builders.task("worker-0"), 0)["spec"]["tolerations"]
    assert tolerations == [ours(NOT_READY), ours(UNREACHABLE)]


@pytest.mark.parametrize(
    ("users", "added"),
    [
        ({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}, [NOT_READY, UNREACHABLE]),
        ({"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 600}, [UNREACHABLE]),
        ({"key": UNREACHABLE, "operator": "Exists"}, [NOT_READY]),
        ({"key": UNREACHABLE, "operator": "Exists", "effect": "NoSchedule"}, [NOT_READY, UNREACHABLE]),
        ({"operator": "Exists"}, []),
        ({"key": "", "operator": "Exists", "effect": "NoExecute"}, []),
        ({"operator": "Exists", "effect": "NoSchedule"}, [NOT_READY, UNREACHABLE]),
    ],
)
def test_the_users_tolerations_take_precedence(users: dict[str, Any], added: list[str]) -> None:
    assert with_node_loss([users]) == [users, *map(ours, added)]


GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
TEAM = {"key": "team", "operator": "Equal", "value": "vision", "effect": "NoSchedule"}


@pytest.mark.parametrize("mount", ["Chief", "All"])
def test_an_evaluator_may_go_to_the_node_that_the_chief_is_kept_on(mount: str) -> None:
    """It has to, where the volume is mounted there alone."""
    patient = {"key": NOT_READY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 600}
    chief = {"resources": {"limits": {"nvidia.com/gpu": 1}}, "template": {"spec": {"tolerations": [TEAM, patient]}}}
    volume = {"persistentVolumeClaim": {"claimName": "digits"}}
    job = builders.job(
        replicaSpecs={"chief": chief, "worker": {}, "evaluator": {"template": {"spec": {"tolerations": [TEAM]}}}},
        checkpoint={"storage": {"volume": volume, "mountOn": mount}},
    )
    follows = [GPU] if mount == "Chief" else []
    evaluator = builders.task("evaluator-0")
    assert pod(job, evaluator, 0)["spec"]["tolerations"] == [TEAM, ours(NOT_READY), ours(UNREACHABLE), *follows]
    after_the_chief = pod(job, evaluator, 0, chief_attempt=None)["spec"]["tolerations"]
    assert after_the_chief == [TEAM, ours(NOT_READY), ours(UNREACHABLE)]


def test_a_template_keeps_its_own_tolerations() -> None:
    own = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    job = builders.job(replicaSpecs={"chief": {}, "worker": {"template": {"spec": {"tolerations": [own]}}}})
    assert pod(job, builders.task("worker-0"), 0)["spec"]["tolerations"] == [own, ours(NOT_READY)]
    assert job.spec.replica_specs.worker.template.spec.tolerations == [own]
