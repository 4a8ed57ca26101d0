# SPDX-License-Identifier: Apache-2.0
from copy import deepcopy

import pytest

from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Internal
from dtjob.plan.seen.children import Children, ObservedPod, PodState, facts_of, view_tasks
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

JOB = builders.job()
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
