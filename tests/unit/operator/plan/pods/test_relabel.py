# SPDX-License-Identifier: Apache-2.0
"""Labels that somebody took from our pods are restored."""

from __future__ import annotations

import pytest

from dtjob.api.job import Job
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Relabel
from dtjob.plan.pods.relabel import restore_labels
from tests.unit.operator import builders

JOB = builders.job(workers=5)


def restored(job: Job, *pods: Manifest) -> list[Relabel]:
    """What is to be restored on these pods."""
    draft = builders.draft(job, *pods)
    restore_labels(draft)
    return [one for one in draft.actions if isinstance(one, Relabel)]


def test_pods_with_their_labels_are_left_alone():
    assert restored(JOB, *builders.all_pods(JOB).values()) == []


@pytest.mark.parametrize(
    "label", [labels.JOB_NAME, labels.JOB_UID, labels.ROLE, labels.INDEX, labels.ATTEMPT, labels.SERVING]
)
@pytest.mark.parametrize("changed", [None, "other"])
def test_a_lost_or_changed_label_is_restored(label: str, changed: str | None):
    pods = builders.all_pods(JOB)
    pod = pods["worker-1"]
    was = pod["metadata"]["labels"].pop(label)
    if changed:
        pod["metadata"]["labels"][label] = changed
    (action,) = restored(JOB, *pods.values())
    assert (action.name, action.uid, action.labels) == ("digits-worker-1-0", pod["metadata"]["uid"], {label: was})


def test_a_pod_without_labels_gets_all_labels_of_dtjob_back():
    pods = builders.all_pods(JOB)
    was = pods["chief-0"]["metadata"].pop("labels")
    (action,) = restored(JOB, *pods.values())
    assert action.labels == {name: value for name, value in was.items() if name != labels.MANAGED_BY}


def test_an_earlier_attempt_does_not_get_its_host_name_back():
    job = builders.job(status=builders.at_attempts({"worker-0": 1}))
    old = builders.pod(job, "worker-0", builders.running())
    del old["metadata"]["labels"][labels.SERVING]
    del old["metadata"]["labels"][labels.INDEX]
    (action,) = restored(job, old)
    assert action.labels == {labels.INDEX: "0"}
