# SPDX-License-Identifier: Apache-2.0
"""What would keep pods from being created, beside the rows of `tests/refusals/resources.py`."""

from typing import Any

import pytest

from dtjob.crd.answers.field_errors import Problem
from dtjob.crd.answers.pod_problems import rules_of_pods, types_in_pods
from tests.refusals import GOOD
from tests.refusals.manifests import CLAIM, Manifest, changed, job, pod, storage

MOUNT = [{"name": "checkpoints", "mountPath": "/data"}]
SIDECAR = {"name": "log", "image": "a", "volumeMounts": MOUNT}


def pod_problems(manifest: Manifest) -> list[Problem]:
    """What is said of the pods of a manifest in which nothing else is wrong."""
    return list(types_in_pods(manifest)) or rules_of_pods(manifest)


@pytest.mark.parametrize("name", GOOD)
def test_good_manifests_have_no_pod_problems(name: str) -> None:
    assert pod_problems(GOOD[name]) == []


def test_each_problem_of_a_pod_template_has_its_path() -> None:
    manifest = job(replicaSpecs=pod(nodeSelecter={}, containers=[{"name": "tensorflow", "imagePullPolicy": 1}]))
    assert [problem.field for problem in pod_problems(manifest)] == [
        "spec.replicaSpecs.worker.template.spec.nodeSelecter",
        "spec.replicaSpecs.worker.template.spec.containers[0].imagePullPolicy",
    ]


def test_a_null_is_as_if_left_out() -> None:
    assert pod_problems(job(replicaSpecs=pod(hostNetwork=None, tolerations=[None], unknown=None))) == []


def of_role(role: str, container: dict[str, Any], **fields: Any) -> Manifest:
    """A job whose checkpoint volume is one of dtjob's, with a sidecar in the pods of this role."""
    roles = {"chief": {}, "worker": {}, role: {"template": {"spec": {"containers": [container]}}}}
    return changed(storage(volume=CLAIM, **fields), "spec", "replicaSpecs", to=roles)


def test_a_sidecar_may_mount_the_checkpoints_where_dtjob_has_them() -> None:
    for role, fields in (("chief", {}), ("evaluator", {}), ("worker", {"mountOn": "All"})):
        assert pod_problems(of_role(role, SIDECAR, **fields)) == [], role
    for role, fields in (("worker", {}), ("data", {"mountOn": "All"})):
        (found,) = pod_problems(of_role(role, SIDECAR, **fields))
        assert found.field == f"spec.replicaSpecs.{role}.template.spec.volumes"


def test_a_volume_of_ones_own_may_have_the_name_that_dtjob_does_not_use() -> None:
    manifest = job(replicaSpecs=pod(containers=[SIDECAR], volumes=[{"name": "checkpoints", "emptyDir": {}}]))
    assert pod_problems(manifest) == []
