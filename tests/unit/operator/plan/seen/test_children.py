# SPDX-License-Identifier: Apache-2.0
"""The state of a task, from what a kubelet wrote about its pod."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest

from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Internal
from dtjob.api.status.status import Status
from dtjob.api.status.workers import ReplicaStatus
from dtjob.plan.seen import children
from dtjob.plan.seen.children import LOST_AFTER, Children, ObservedPod, PodState, count_tasks, facts_of, view_tasks
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

JOB = builders.job()


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, PodState.PENDING),
        (builders.unschedulable(), PodState.PENDING),
        (builders.waiting("ImagePullBackOff"), PodState.PENDING),
        (builders.running(), PodState.RUNNING),
        (builders.ended(0), PodState.SUCCEEDED),
        (builders.ended(1), PodState.FAILED),
        (builders.evicted(), PodState.FAILED),
        (builders.rejected(), PodState.FAILED),
        # A sidecar keeps the phase Running: the training container decides.
        ({**builders.ended(0), "phase": "Running"}, PodState.SUCCEEDED),
        ({**builders.ended(1), "phase": "Running"}, PodState.FAILED),
        # Nobody saw the training container end.
        ({"phase": "Succeeded"}, PodState.FAILED),
        ({"phase": "Unknown"}, PodState.PENDING),
    ],
)
def test_each_status_of_a_pod_gives_the_state_of_its_task(status: dict[str, Any], state: PodState):
    assert children.state_of(builders.pod(JOB, "worker-0", status), NOW) is state


def test_a_pod_is_lost_when_it_outlives_its_grace_period():
    pod = builders.deleting(builders.pod(JOB, "worker-0", builders.running()), NOW, grace=30)
    lost = at(30) + LOST_AFTER
    assert facts_of(pod).lost_at == lost
    assert children.state_of(pod, lost - timedelta(seconds=1)) is PodState.RUNNING
    assert children.state_of(pod, lost) is PodState.LOST
    pod["status"] = builders.ended(143)
    assert facts_of(pod).lost_at is None


def test_a_tasks_state_is_that_of_its_current_attempt():
    job = builders.with_status(JOB, builders.at_attempts({"worker-0": 1}))
    old = builders.pod(job, "worker-0", builders.ended(1))
    chief, first, second = builders.views(job, old)
    assert [view.state for view in (chief, first, second)] == [PodState.MISSING] * 3
    assert first.pods == (old,)
    new = builders.pod(job, "worker-0", builders.running(), attempt=1)
    assert builders.views(job, old, new)[1].state is PodState.RUNNING


def test_a_task_is_up_while_it_runs_and_when_it_has_done_its_part():
    job = builders.job(workers=3, evaluator=True)
    states = {"chief_0": builders.ended(0), "worker_1": builders.unschedulable(), "worker_2": builders.ended(1)}
    views = builders.views(job, *builders.all_pods(job, **states, evaluator_0=None).values())
    assert [view.task.id for view in views if view.up] == ["chief-0", "worker-0"]
    assert [view.task.id for view in views if view.evaluates] == ["evaluator-0"]


def test_owned_is_by_uid_and_not_by_label():
    ours, others = builders.pod(JOB, "worker-0"), builders.pod(builders.job(uid="earlier"), "worker-1")
    orphan = builders.pod(JOB, "chief-0")
    del orphan["metadata"]["ownerReferences"]
    assert Children((ours, others, orphan)).owned_pods(JOB) == [ours]


@pytest.mark.parametrize(
    "pod",
    [
        builders.deleting(builders.pod(JOB, "chief-0", builders.ended(0, at(5))), NOW),
        builders.deleting(builders.pod(JOB, "chief-0", builders.ended(0, at(-5))), NOW),
        builders.pod(JOB, "chief-0", {**builders.ended(0), "conditions": builders.disrupted()["conditions"]}),
    ],
    ids=["when it was deleted", "when it was deleted, on a node whose clock is behind", "when it was evicted"],
)
def test_an_end_on_request_is_no_success_of_an_image_without_a_supervisor(pod: Any):
    """It saved, and left with 0."""
    assert children.state_of(pod, NOW) is PodState.FAILED
    assert children.state_of(pod, NOW, supervised=True) is PodState.SUCCEEDED


def test_a_supervisor_that_was_stopped_before_its_program_finished_has_failed():
    pod = builders.deleting(builders.pod(JOB, "chief-0", builders.ended(143, at(5))), NOW)
    assert children.state_of(pod, NOW, supervised=True) is PodState.FAILED


def test_a_task_that_is_known_to_have_finished_has_whatever_became_of_its_pod():
    job = builders.job(program=False, status=builders.at_attempts({"worker-0": 1}))
    drained = builders.deleting(builders.pod(job, "worker-0", builders.ended(0, at(5)), attempt=1), NOW)
    at_one = Attempts(exceptions={"worker-0": 1})
    for pods in ((), (drained,)):
        seen = children.view_tasks(
            job, Children(pods), Internal(attempts=at_one, finished={"worker-0": 1, "worker-1": 1}), NOW
        )
        chief, first, second = seen
        assert (chief.state, first.state) == (PodState.MISSING, PodState.SUCCEEDED)
        assert second.state is PodState.MISSING  # it is at attempt 0, and attempt 1 is what finished


def test_a_task_whose_pod_has_not_ended_has_not_finished_whatever_the_status_says():
    """Somebody may have forged it: a container that has ended never runs again."""
    job = builders.job(program=False)
    for status, state in ((builders.running(), PodState.RUNNING), ({}, PodState.PENDING)):
        pod = builders.pod(job, "worker-0", status)
        _, first, _ = children.view_tasks(job, Children((pod,)), Internal(finished={"worker-0": 0}), NOW)
        assert first.state is state


@pytest.mark.parametrize("name", ["digits-worker-0", "digits-worker-0-x", "digit-worker-0-0", "digits-worker-9-0"])
def test_a_pod_of_another_name_is_at_no_task(name: str):
    pod = builders.pod(JOB, "worker-0", builders.running())
    pod["metadata"]["name"] = name
    assert all(view.pods == () for view in builders.views(JOB, pod))


def test_tasks_are_counted_by_role_and_state():
    """A lost pod counts as failed."""
    job = builders.job("ParameterServer", workers=4, ps=1)
    states = {"chief_0": builders.ended(0), "worker_1": builders.out_of_memory(), "worker_2": builders.unschedulable()}
    pods = builders.all_pods(job, **states, worker_3=None)
    pods["ps-0"] = builders.deleting(pods["ps-0"], NOW, grace=30)
    status = count_tasks(Status(), builders.views(job, *pods.values(), now=at(45)))
    assert status.ready == "2/6"
    assert status.replica_statuses == {
        "chief": ReplicaStatus(replicas=1, succeeded=1),
        "worker": ReplicaStatus(replicas=4, active=1, pending=1, failed=1),
        "ps": ReplicaStatus(replicas=1, failed=1),
    }


STATES = (
    {},
    builders.running(),
    builders.ended(0),
    builders.out_of_memory(),
    builders.evicted(),
    builders.unschedulable(),
)


def test_a_copy_is_a_plain_manifest_of_which_nothing_is_kept():
    pod = ObservedPod(builders.pod(JOB, "chief-0", builders.running()))
    facts_of(pod)
    copy = deepcopy(pod)
    assert type(copy) is dict
    copy["status"] = builders.out_of_memory()
    assert facts_of(copy).end is not None
    assert facts_of(pod).end is None


@pytest.mark.parametrize(
    ("name", "task"), [("digits-chief-0-2", ("chief-0", 2)), ("digits-chief-0-x", (None, None)), ("mine", (None, None))]
)
def test_a_pods_name_says_its_task_whatever_its_labels_say(name: str, task: tuple[str | None, int | None]):
    pod = builders.pod(JOB, "chief-0")
    pod["metadata"] |= {"name": name, "labels": {}}
    facts = facts_of(pod)
    assert ((facts.task_id, facts.attempt), facts.controller) == (task, JOB.metadata.uid)


@pytest.mark.parametrize("status", STATES)
def test_views_of_observed_pods_are_those_of_plain_ones(status):
    pods = [builders.pod(JOB, id_, deepcopy(status)) for id_ in ("chief-0", "worker-0")]
    pods[1] = builders.deleting(pods[1])
    observed = Children(tuple(ObservedPod(pod) for pod in pods))
    for now in (NOW, at(44), at(46)):  # views of the first may serve again, but a pod that is deleted may be lost
        assert view_tasks(JOB, observed, Internal(), now) == view_tasks(JOB, Children(tuple(pods)), Internal(), now)


def test_a_view_serves_again_while_pod_and_attempt_are_the_same():
    pod = ObservedPod(builders.pod(JOB, "chief-0", builders.running()))
    first = view_tasks(JOB, Children((pod,)), Internal(), NOW)[0]
    assert view_tasks(JOB, Children((pod,)), Internal(), at(5))[0] is first
    replaced = Internal(attempts=Attempts(exceptions={"chief-0": 1}))
    assert view_tasks(JOB, Children((pod,)), replaced, at(5))[0].state is PodState.MISSING
    failed = ObservedPod({**pod, "status": builders.ended(1)})
    assert view_tasks(JOB, Children((failed,)), Internal(), at(5))[0].state is PodState.FAILED
