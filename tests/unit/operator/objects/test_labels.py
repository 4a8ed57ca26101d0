# SPDX-License-Identifier: Apache-2.0
"""The labels by which dtjob finds its own."""

from dtjob.objects import labels
from tests.unit.operator import builders


def test_an_object_without_labels_or_a_controller_has_no_job() -> None:
    assert labels.of({"metadata": {"labels": None}}) == {}
    assert labels.controller_uid({"metadata": {}}) is None
    owners = [{"uid": "a"}, {"uid": "b", "controller": False}, {"uid": "c", "controller": True}]
    assert labels.controller_uid({"metadata": {"ownerReferences": owners}}) == "c"


def test_a_pod_says_by_its_owner_which_job_it_is_of() -> None:
    pod = builders.pod(builders.job(), "worker-1")
    assert labels.controlling_job(pod) == "digits"
    (owner,) = pod["metadata"]["ownerReferences"]
    for change in ({"controller": False}, {"kind": "Job"}, {"apiVersion": "batch/v1"}):
        pod["metadata"]["ownerReferences"] = [{**owner, **change}]
        assert labels.controlling_job(pod) is None
    del pod["metadata"]["ownerReferences"]
    assert labels.controlling_job(pod) is None
