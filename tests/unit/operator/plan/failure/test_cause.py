# SPDX-License-Identifier: Apache-2.0
"""Why a pod failed: every way in which a kubelet, a scheduler or a user ends one."""

# ruff: noqa: E501 (a table reads best with one case a line)

from datetime import datetime
from typing import Any

import pytest

from dtjob import times
from dtjob.api.spec.failure_rules import FailureRule
from dtjob.controller.stored_fields import kept
from dtjob.objects.manifest import Manifest
from dtjob.plan.failure.cause import evidence_of, failure_of, vanished
from dtjob.plan.failure.rules import match
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.seen.children import TaskView
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.ruled import TARGET

JOB = builders.job()


def failed(pod: Manifest, now: datetime) -> Failure | None:
    return failure_of(TaskView.of(builders.task("worker-1"), 0, (pod,), now), now)


def failure(status: dict[str, Any], deleted: bool = False) -> Failure:
    pod = builders.pod(JOB, "worker-1", status)
    found = failed(builders.deleting(pod) if deleted else pod, at(10))
    assert found is not None
    return found


EMPTY_DIR_FULL = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '
CONTAINER_FULL = 'Container tensorflow exceeded its local ephemeral storage limit "2Gi". '


def init_failed(code: int, **more: Any) -> dict[str, Any]:
    """An init container failed, so the training container never started."""
    terminated = {"exitCode": code, "message": "no such bucket", "finishedAt": times.rfc3339(at(3)), **more}
    waiting = [{"name": "tensorflow", "state": {"waiting": {"reason": "PodInitializing"}}}]
    init = [
        {"name": "ready", "state": {"terminated": {"exitCode": 0}}},
        {"name": "fetch", "state": {"terminated": terminated}},
    ]
    return {"phase": "Failed", "containerStatuses": waiting, "initContainerStatuses": init}


def beside(status: dict[str, Any], when: datetime) -> dict[str, Any]:
    """The status with a sidecar that the kernel killed at that moment."""
    terminated = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": times.rfc3339(when)}
    proxy = {"name": "proxy", "state": {"terminated": terminated}}
    return {**status, "containerStatuses": [proxy, *status["containerStatuses"]]}


@pytest.mark.parametrize(
    ("status", "cause", "sentence"),
    [
        (builders.ended(1), Cause.ERROR, "worker-1 failed (exit code 1)"),
        (builders.ended(76), Cause.ERROR, "worker-1 kept losing its peers without a new step (exit code 76)"),
        (builders.ended(77), Cause.ERROR, "worker-1 failed (exit code 77)"),
        (builders.ended(128, reason="StartError"), Cause.ERROR, "worker-1 failed (exit code 128)"),
        (builders.ended(137), Cause.SIGNAL, "worker-1 was killed (SIGKILL)"),
        (builders.ended(139, signal=11), Cause.SIGNAL, "worker-1 was killed (SIGSEGV)"),
        (builders.out_of_memory(), Cause.OOM_KILLED, "worker-1 ran out of memory (OOMKilled)"),
        (builders.disrupted("PreemptionByScheduler"), Cause.DISRUPTION, "worker-1 was disrupted (PreemptionByScheduler)"),
        (builders.evicted("Evicted"), Cause.DISRUPTION, "worker-1 was disrupted (Evicted)"),
        (builders.evicted("Evicted", "The node had condition: [DiskPressure]. "), Cause.DISRUPTION, "worker-1 was disrupted (Evicted)"),
        (builders.evicted("Evicted", EMPTY_DIR_FULL), Cause.STORAGE_LIMIT_EXCEEDED, 'worker-1 was evicted: Usage of EmptyDir volume "scratch" exceeds the limit "1Gi"'),
        (builders.evicted("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. "), Cause.STORAGE_LIMIT_EXCEEDED, "worker-1 was evicted: Pod ephemeral local storage usage exceeds the total limit of containers 2Gi"),
        ({**builders.ended(137), **builders.evicted("Evicted", CONTAINER_FULL)}, Cause.STORAGE_LIMIT_EXCEEDED, 'worker-1 was evicted: Container tensorflow exceeded its local ephemeral storage limit "2Gi"'),
        ({**builders.disrupted(), **builders.evicted("Evicted", EMPTY_DIR_FULL)}, Cause.DISRUPTION, "worker-1 was disrupted (EvictionByEvictionAPI)"),
        (builders.evicted("NodeShutdown"), Cause.DISRUPTION, "worker-1 was disrupted (NodeShutdown)"),
        (builders.rejected("OutOfcpu"), Cause.NOT_STARTED, "worker-1 never started (OutOfcpu)"),
        (builders.rejected("UnexpectedAdmissionError"), Cause.NOT_STARTED, "worker-1 never started (UnexpectedAdmissionError)"),
        ({"phase": "Failed"}, Cause.NOT_STARTED, "worker-1 never started (no container status)"),
        (init_failed(3), Cause.ERROR, "worker-1 never started: init container fetch failed (exit code 3)"),
        (init_failed(137, reason="OOMKilled"), Cause.OOM_KILLED, "worker-1 never started: init container fetch ran out of memory (OOMKilled)"),
        (beside(builders.ended(1, at(5)), at(4)), Cause.ERROR, "worker-1 failed (exit code 1) after container proxy ran out of memory (OOMKilled)"),
        (beside(builders.ended(1, at(5)), at(6)), Cause.ERROR, "worker-1 failed (exit code 1)"),
        (init_failed(137), Cause.SIGNAL, "worker-1 never started: init container fetch was killed (SIGKILL)"),
        (builders.ended(137, reason="ContainerStatusUnknown"), Cause.DISRUPTION, "worker-1 ended with an unknown exit code, as when its node restarts (ContainerStatusUnknown)"),
        (builders.ended(255, reason="Unknown"), Cause.DISRUPTION, "worker-1 ended with an unknown exit code, as when its node restarts (Unknown)"),
    ],
)  # fmt: skip
def test_each_end_of_a_pod_has_its_cause_and_its_sentence(status: dict[str, Any], cause: Cause, sentence: str):
    found = failure(status)
    assert (found.cause, found.sentence()) == (cause, sentence)


@pytest.mark.parametrize(
    ("status", "container", "sentence"),
    [
        (builders.out_of_memory(), "tensorflow", "worker-1 ran out of memory (OOMKilled, limits.memory is 2Gi)"),
        (builders.out_of_memory(), "proxy", "worker-1 ran out of memory (OOMKilled)"),
        (init_failed(137, reason="OOMKilled"), "fetch", "worker-1 never started: init container fetch ran out of memory (OOMKilled, limits.memory is 2Gi)"),
        (beside(builders.ended(1, at(5)), at(4)), "proxy", "worker-1 failed (exit code 1) after container proxy ran out of memory (OOMKilled, limits.memory is 2Gi)"),
    ],
)  # fmt: skip
def test_the_memory_limit_of_the_pod_is_named(status: dict[str, Any], container: str, sentence: str):
    pod = builders.pod(JOB, "worker-1", status)
    limited = {"name": container, "resources": {"limits": {"memory": "2Gi"}}}
    pod["spec"] |= {"containers": [{"name": "tensorflow"}], "initContainers": [limited]}
    found = failure_of(TaskView.of(builders.task("worker-1"), 0, (kept(pod),), NOW), NOW)
    assert found.sentence() == sentence


@pytest.mark.parametrize(
    ("status", "cause", "sentence"),
    [
        (builders.stalled("worker-1"), Cause.STALLED, "worker-1 stalled after step 120, in its data function (exit code 77)"),
        (builders.stalled("ps-0", "its supervisor is silent"), Cause.STALLED, "worker-1 stalled after step 120, waiting for ps-0: its supervisor is silent (exit code 77)"),
        ({**builders.disrupted(), **builders.stalled("worker-1")}, Cause.STALLED, "worker-1 stalled after step 120, in its data function (exit code 77)"),
        (builders.failed(77, stepped=True), Cause.ERROR, "worker-1 failed (exit code 77)"),
    ],
)  # fmt: skip
def test_a_stall_is_what_its_supervisor_calls_so(status: dict[str, Any], cause: Cause, sentence: str):
    pod = builders.pod(JOB, "worker-1", status)
    found = failure_of(TaskView.of(builders.task("worker-1"), 0, (pod,), NOW, supervised=True), NOW)
    assert (found.cause, found.sentence()) == (cause, sentence)


def test_a_user_who_deletes_a_pod_is_no_failure_of_its_own():
    assert failure(builders.ended(143), deleted=True).cause is Cause.DELETED
    assert vanished(builders.task("worker-1"), "digits-worker-1-0", NOW).sentence() == "worker-1 was deleted"


@pytest.mark.parametrize("status", [builders.running(), builders.unschedulable(), {}])
def test_a_deletion_that_was_only_asked_for_is_no_failure(status: dict[str, Any]):
    pod = builders.deleting(builders.pod(JOB, "worker-1", status), grace=30)
    assert failed(pod, at(44)) is None


def test_a_pod_that_outlives_its_grace_period_is_lost():
    pod = builders.deleting(builders.pod(JOB, "worker-1", builders.running()), grace=30)
    found = failed(pod, at(45))
    assert found is not None
    assert (found.cause, found.sentence()) == (Cause.DISRUPTION, "worker-1 was lost with its node")


def test_a_failure_has_the_message_of_the_failed_init_container():
    assert failure(init_failed(3)).log_tail == "no such bucket"


def test_a_failure_has_the_time_that_its_pod_records():
    """Else it would be of each moment at which one looks, and what waits for a while after it would wait for ever."""
    assert failure(init_failed(3)).time == at(3)
    assert failure(builders.ended(1, at(5))).time == at(5)
    condition = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": times.rfc3339(at(7))}
    assert failure({**builders.evicted(), "conditions": [condition]}).time == at(7)
    assert failure(builders.evicted()).time == at(10)


IN = {"operator": "In", "values": [1, 42]}
NOT_IN = {"operator": "NotIn", "values": [1, 42]}


def init(status: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod of which an init container is so."""
    training = [{"name": "tensorflow", "state": {"waiting": {"reason": "PodInitializing"}}}]
    return {**status, "initContainerStatuses": [{"name": "fetch", "state": end}], "containerStatuses": training}


INIT_42 = init({"phase": "Failed"}, {"terminated": {"exitCode": 42, "reason": "Error"}})
UNKNOWN = builders.ended(137, reason="ContainerStatusUnknown")


@pytest.mark.parametrize(
    ("criterion", "status", "matched"),
    [
        ({"onExitCodes": IN}, builders.ended(42), "exit code 42"),
        ({"onExitCodes": IN}, builders.ended(2), ""),
        ({"onExitCodes": IN}, INIT_42, "exit code 42"),
        ({"onExitCodes": NOT_IN}, builders.ended(2), "exit code 2"),
        ({"onExitCodes": NOT_IN}, builders.ended(42), ""),
        ({"onExitCodes": NOT_IN}, builders.ended(0), ""),  # told to end: 0 is no failure of its own
        ({"onExitCodes": NOT_IN}, builders.evicted(), ""),  # no container ended
        ({"onExitCodes": NOT_IN}, UNKNOWN, ""),  # the kubelet made it up
        ({"onExitCodes": NOT_IN}, builders.running(), ""),
        ({"onSignals": ["SIGSEGV"]}, builders.ended(139), "signal SIGSEGV"),
        ({"onSignals": ["SIGSEGV"]}, builders.ended(1, signal=11), "signal SIGSEGV"),
        ({"onSignals": ["SIGSEGV", "SIGBUS"]}, builders.ended(137), ""),
        ({"onSignals": ["SIGKILL"]}, UNKNOWN, ""),
        ({"onReasons": ["OOMKilled"]}, builders.out_of_memory(), "reason OOMKilled"),
        ({"onReasons": ["OOMKilled"]}, builders.ended(137, reason="Error"), ""),
        ({"onReasons": ["Error", "Evicted"]}, builders.evicted(), "reason Evicted"),
        ({"onReasons": ["ContainerStatusUnknown"]}, UNKNOWN, "reason ContainerStatusUnknown"),
        ({"onReasons": ["OutOfcpu"]}, builders.rejected(), "reason OutOfcpu"),
        ({"onReasons": ["ErrImagePull", "ImagePullBackOff"]}, builders.waiting("ImagePullBackOff"), "reason ImagePullBackOff"),
        ({"onReasons": ["ErrImagePull"]}, init({"phase": "Pending"}, {"waiting": {"reason": "ErrImagePull"}}), "reason ErrImagePull"),
        ({"onPodConditions": [TARGET]}, builders.disrupted("PreemptionByScheduler"), "pod condition DisruptionTarget=True (PreemptionByScheduler)"),
        ({"onPodConditions": [{**TARGET, "reason": "PreemptionByScheduler"}]}, builders.disrupted(), ""),
        ({"onPodConditions": [{**TARGET, "status": "False"}]}, builders.disrupted(), ""),
        ({"onPodConditions": [{"type": "Other"}, {**TARGET, "reason": "EvictionByEvictionAPI"}]}, builders.disrupted(), "pod condition DisruptionTarget=True (EvictionByEvictionAPI)"),
        ({"roles": ["worker"]}, builders.evicted(), "any failure of role worker"),
    ],
)  # fmt: skip
def test_each_criterion_of_a_rule_matches_its_own_evidence(criterion, status, matched):
    pod = builders.pod(builders.job(), "worker-0", status)
    rule = FailureRule.model_validate({"action": "FailJob", **criterion})
    assert match(rule, evidence_of(pod), builders.task("worker-0").role) == matched
