# SPDX-License-Identifier: Apache-2.0
"""A job that MultiKueue runs in another cluster: its Workload, and nothing else."""

from typing import Any

import pytest

from dtjob.objects import kueue
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.plan.plan import plan
from dtjob.plan.queueing.queueing import CONTROLLER
from dtjob.plan.seen.workload import Kueue
from tests.unit.operator.builders import NOW, at, with_status
from tests.unit.operator.queued import CLAIM, QUEUE, Story, condition, kinds


def sent(**spec: object) -> Story:
    return Story(managedBy=CONTROLLER, **spec)


def test_a_job_of_multikueue_gets_a_workload_and_no_pods() -> None:
    story = sent()
    assert kinds(story.look()) == ["make Workload"]
    story.admit()
    assert plan(story.job, story.children, at(10)).actions == ()
    assert (story.pods, story.job.status) == ([], {})


@pytest.mark.parametrize(
    "story",
    [
        Story(managedBy=CONTROLLER, labels={}),
        Story(managedBy="example.com/other"),
        Story(managedBy=CONTROLLER, kueue=Kueue.ABSENT),
        Story(managedBy=CONTROLLER, suspend=True),
    ],
)
def test_a_job_without_queue_kueue_or_multikueue_or_suspended_gets_no_workload(story: Story) -> None:
    made = plan(story.job, story.children, NOW)
    assert (made.actions, made.status) == ((), None)


def test_an_ended_job_is_not_queued_again() -> None:
    story = sent()
    story.job = with_status(story.job, {"phase": "Succeeded"})
    assert plan(story.job, story.children, NOW).actions == ()


def test_an_evicted_workload_gives_its_quota_back_at_once() -> None:
    story = sent()
    story.look()
    story.admit()
    story.evict("AdmissionCheck", "the other cluster has evicted it")
    story.settle(at(10))
    assert story.said("QuotaReserved") == ("False", "Pending")
    assert story.job.status == {}


def test_a_suspended_job_gives_its_place_up() -> None:
    story = sent()
    story.look()
    story.suspend(True)
    assert kinds(story.look(at(10))) == ["delete Workload"]


def test_a_finished_workload_is_not_changed() -> None:
    story = sent()
    story.look()
    story.say(condition("Finished", True, "Succeeded"))
    assert plan(story.job, story.children, at(10)).actions == ()


def test_a_job_that_changes_keeps_its_place_while_it_waits() -> None:
    story = sent(replicaSpecs={"chief": {}, "worker": {"replicas": 2}}, elasticPolicy={"minReplicas": 1})
    story.look()
    before = story.workloads[2]["metadata"]["uid"]
    story.scale(3)
    story.settle(at(10))
    assert story.workloads[3]["metadata"]["uid"] == before


def test_the_other_cluster_takes_up_the_workload_that_an_annotation_names() -> None:
    story = Story()
    metadata = story.job.metadata.model_copy(update={"annotations": {kueue.PREBUILT: "theirs"}})
    story.job = story.job.model_copy(update={"metadata": metadata})
    assert kueue.prebuilt_of(story.job) == "theirs"


def test_a_workload_that_multikueue_copied_is_not_dtjobs_own_in_the_other_cluster() -> None:
    """MultiKueue copies a Workload with its annotations."""
    specs: Any = {"replicaSpecs": {"chief": {}, "worker": {"replicas": 2}}, "elasticPolicy": {"minReplicas": 1}}
    here = sent(**specs)
    here.look()
    assert here.workload is not None
    made = kueue.workload(here.job, NO_DEFAULTS, None)
    metadata = {name: made["metadata"][name] for name in ("name", "namespace", "annotations")}
    there = Story({**QUEUE, kueue.PREBUILT: metadata["name"]}, **specs, checkpoint=CLAIM)
    copied = {**made, "metadata": {**metadata, "uid": "theirs", "resourceVersion": "7"}}
    there.there[kueue.KIND, metadata["name"]] = copied
    there.settle(at(10))
    there.admit(at(20))
    there.run(at(21))
    assert there.stands[0] == "Running"
    for workers in (4, 1):
        there.scale(workers)
        there.run(at(30))
        assert list(there.workloads) == [2]
    there.suspend(True)
    there.settle(at(40))
    assert (there.pods, list(there.workloads)) == ([], [2])
