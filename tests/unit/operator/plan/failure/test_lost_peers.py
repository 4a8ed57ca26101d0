# SPDX-License-Identifier: Apache-2.0
"""Lost peers: which loss an error follows from, with images that know nothing of dtjob."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.api.status.activity import Activity
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Errors, Incident
from dtjob.api.status.restarts import LastFailure
from dtjob.api.status.status import Status
from dtjob.objects.manifest import Manifest
from dtjob.plan.failure.cause import failure_of
from dtjob.plan.failure.decisions import Restart, Wait
from dtjob.plan.failure.lost_peers import explain, first_cause, wait_for_late_reports
from dtjob.plan.record.failure import Cause, Failure
from dtjob.plan.record.status import set_condition
from dtjob.plan.seen.situation import Situation
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at

DRAINED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
TAINTED = {**DRAINED, "reason": "DeletionByTaintManager"}
GATES = {"readinessGates": [{"conditionType": "example.com/ready"}]}
SILENT = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]


def conditions(pod: Manifest, *conditions: dict[str, str]) -> Manifest:
    return {**pod, "status": {**pod["status"], "conditions": list(conditions)}}


def failed(situation: Situation, task_id: str) -> Failure:
    view = next(view for view in situation.views if view.task.id == task_id)
    failure = failure_of(view, situation.now)
    assert failure is not None
    return failure


def of(strategy: str = "MultiWorkerMirrored", program: bool = False) -> Job:
    return builders.job(strategy, program=program, evaluator=True, ps=2 if strategy == "ParameterServer" else 0)


def first_after(job: Job, who: str, taken: str, becomes: Callable[[Manifest], Manifest], code: int = 1) -> Failure:
    """The first cause where one task has ended with this code, and the pod of another becomes so."""
    pods = builders.all_pods(job, **{who: builders.ended(code, at(1))})
    pods[taken] = becomes(pods[taken])
    situation = builders.situation(job, *pods.values(), now=at(1))
    return first_cause(situation, failed(situation, who))


@pytest.mark.parametrize(
    ("strategy", "program", "code", "who", "taken", "cause"),
    [
        ("MultiWorkerMirrored", False, 1, "chief-0", "worker-1", Cause.DELETED),
        ("MultiWorkerMirrored", False, 42, "worker-0", "chief-0", Cause.DELETED),
        ("MultiWorkerMirrored", False, 1, "chief-0", "evaluator-0", Cause.ERROR),
        ("MultiWorkerMirrored", True, 76, "chief-0", "worker-1", Cause.DELETED),
        ("MultiWorkerMirrored", True, 1, "chief-0", "worker-1", Cause.ERROR),  # our supervisor tells them apart
        ("ParameterServer", False, 1, "chief-0", "ps-1", Cause.DELETED),
        ("ParameterServer", False, 1, "chief-0", "worker-1", Cause.ERROR),  # it trains on without
        ("ParameterServer", False, 1, "worker-0", "ps-1", Cause.ERROR),
        ("MultiWorkerMirrored", False, 137, "chief-0", "worker-1", Cause.SIGNAL),
    ],
)
def test_a_deleted_peer_explains_an_error_of_a_connected_task_without_a_cause_of_its_own(
    strategy: str, program: bool, code: int, who: str, taken: str, cause: Cause
):
    job = of(strategy, program)
    first = first_after(job, who, taken, builders.deleting, code)
    assert first.cause is cause
    assert first.task.id == (taken if cause is Cause.DELETED else who)


@pytest.mark.parametrize(("who", "taken"), [("worker-0", "ps-1"), ("worker-1", "ps-0")])
def test_without_a_chief_a_ps_that_is_being_taken_explains_each_workers_error(who: str, taken: str):
    job = builders.job("ParameterServer", chief=False, ps=2, program=False)
    assert first_after(job, who, taken, builders.deleting).task.id == taken


@pytest.mark.parametrize(
    ("peer", "cause", "reason"),
    [
        (lambda pod: builders.deleting(pod), Cause.DELETED, "is being deleted"),
        (lambda pod: conditions(pod, DRAINED), Cause.DISRUPTION, "is being disrupted (EvictionByEvictionAPI)"),
        (lambda pod: conditions(pod, *SILENT), Cause.DISRUPTION, "is on a node that does not answer"),
        (lambda pod: conditions(pod | {"spec": pod["spec"] | GATES}, *SILENT), Cause.ERROR, "failed (exit code 1)"),
        (lambda pod: conditions(pod, {**DRAINED, "status": "False"}), Cause.ERROR, "failed (exit code 1)"),
        (lambda pod: conditions(pod, SILENT[0]), Cause.ERROR, "failed (exit code 1)"),  # its readiness probe fails
        (lambda pod: pod, Cause.ERROR, "failed (exit code 1)"),
    ],
)
def test_only_a_peer_that_is_being_deleted_or_disrupted_is_the_first_cause(peer: Any, cause: Cause, reason: str):
    first = first_after(of(), "chief-0", "worker-1", peer)
    assert (first.cause, first.message) == (cause, reason)


def test_an_init_containers_failure_does_not_follow_from_another_failure():
    job = of()
    fetch = {"name": "fetch", "state": {"terminated": {"exitCode": 1, "finishedAt": "2026-11-21T10:00:01Z"}}}
    pods = builders.all_pods(job, chief_0={"phase": "Failed", "initContainerStatuses": [fetch]})
    pods["worker-1"] = builders.deleting(pods["worker-1"])
    situation = builders.situation(job, *pods.values(), now=at(1))
    assert first_cause(situation, failed(situation, "chief-0")).task.id == "chief-0"


INCIDENT = builders.incident(5)
FOLLOWS = {"task": "chief-0", "cause": "Error", "exitCode": 1}
REPLACED = {"chief-0": 1, "worker-0": 1, "worker-1": 1}


def later(old: Any, seconds: float, incident: Incident = INCIDENT) -> Any:
    """What is found so long after the incident's start, of worker 1's replaced pod, which we deleted then."""
    job = builders.with_status(of(), {"lastFailure": FOLLOWS, **builders.remembered(REPLACED, incident)})
    pods = builders.all_pods(job)
    replaced = builders.deleting(builders.pod(job, "worker-1", builders.running()), at(5), grace=60)
    return explain(builders.situation(job, *pods.values(), old(replaced), now=at(5 + seconds)))


def ends(status: dict[str, Any]) -> Any:
    return lambda pod: {**pod, "status": deepcopy(status)}


@pytest.mark.parametrize(
    ("old", "seconds", "cause", "reason"),
    [
        (lambda pod: conditions(pod, DRAINED), 3, Cause.DISRUPTION, "was disrupted (EvictionByEvictionAPI)"),
        (ends(builders.disrupted("TerminationByKubelet")), 9, Cause.DISRUPTION, "was disrupted (TerminationByKubelet)"),
        (ends(builders.evicted("NodeShutdown")), 9, Cause.DISRUPTION, "was disrupted (NodeShutdown)"),
        (ends(builders.out_of_memory(at(5))), 3, Cause.OOM_KILLED, "ran out of memory (OOMKilled)"),
        (lambda pod: conditions(pod, *SILENT), 50, Cause.DISRUPTION, "is on a node that does not answer"),
        (lambda pod: conditions(pod, TAINTED), 70, Cause.DISRUPTION, "was disrupted (DeletionByTaintManager)"),
        (lambda pod: pod, 76, Cause.DISRUPTION, "was lost with its node"),
    ],
)
def test_a_cause_that_a_replaced_pod_shows_later_explains_the_incident(old, seconds, cause, reason):
    found = later(old, seconds)
    assert isinstance(found, Restart)
    assert (found.first.task.id, found.first.cause, found.first.message) == ("worker-1", cause, reason)
    assert (found.incident.cause, found.incident.charged) == (cause, 1 if cause.charged else 0)
    assert found.counted_as == Cause.ERROR


@pytest.mark.parametrize(
    ("old", "seconds"),
    [
        (lambda pod: pod, 30),  # our own deletion
        (ends(builders.ended(143, at(9))), 9),
        (ends(builders.ended(137, at(65), signal=9)), 65),
        (ends(builders.ended(1, at(5))), 9),
        (lambda pod: conditions(pod, DRAINED), 41),  # a drain that came after
        (ends({**builders.ended(143, at(9)), "conditions": [TAINTED]}), 80),  # its node was there
        (ends(builders.out_of_memory(at(50))), 45),
    ],
)
def test_an_end_that_the_replacement_of_a_pod_caused_explains_nothing(old: Any, seconds: float):
    assert not isinstance(later(old, seconds), Restart)


@pytest.mark.parametrize(
    ("strategy", "program", "cause"),
    [("MultiWorkerMirrored", True, Cause.SIGNAL), ("Mirrored", True, Cause.SIGNAL), ("Mirrored", False, Cause.ERROR)],
)
def test_a_cause_that_the_node_reports_later_explains_the_failure(strategy: str, program: bool, cause: Cause):
    """A kubelet that shuts its node down tells of a container's end before it says that it was its doing."""
    incident = builders.incident(5, cause)
    first = {"task": "chief-0", "cause": cause.value, "exitCode": 143}
    job = builders.job(strategy, program=program)
    job = builders.with_status(job, {"lastFailure": first, **builders.remembered({"chief-0": 1}, incident)})
    ended = builders.deleting(builders.pod(job, "chief-0", builders.ended(143, at(5))), at(5))
    pods = builders.all_pods(job).values()
    assert explain(builders.situation(job, *pods, ended, now=at(6))) is None
    ended["status"] |= {"reason": "Terminated", "conditions": [{**DRAINED, "reason": "TerminationByKubelet"}]}
    found = explain(builders.situation(job, *pods, ended, now=at(6)))
    assert isinstance(found, Restart)
    assert (found.incident.cause, found.incident.charged, found.counted_as) == (Cause.DISRUPTION, 0, cause)


@pytest.mark.parametrize(
    "incident",
    [
        builders.incident(5, Cause.SIGNAL),
        builders.incident(5, Cause.DISRUPTION, charged=0),
        builders.incident(5, "NodeMelted"),
        builders.incident(5, attempts=Attempts(exceptions={"worker-1": 1})),  # that pod is older
    ],
)
def test_only_an_error_of_that_attempts_peers_is_explained(incident: Incident):
    assert isinstance(later(lambda pod: conditions(pod, DRAINED), 3), Restart)
    assert not isinstance(later(lambda pod: conditions(pod, DRAINED), 3, incident), Restart)


@pytest.mark.parametrize(("lost", "restarts"), [([0], 2), ([1], 1), ([1, 0], 2)])
def test_repeated_errors_are_explained_from_the_pod_on_that_was_lost(lost: list[int], restarts: int):
    """The group failed at attempts 0 and 1, and is at attempt 2."""
    repeated = Errors(began=at(5), count=2, attempts=Attempts())
    attempts = {"chief-0": 1, "worker-0": 1, "worker-1": 1}
    waits = {"not_before": at(30), "charged": 2, "in_a_row": 2}
    incident = builders.incident(20, attempts=Attempts(exceptions=attempts), errors=repeated, **waits)
    status = {"lastFailure": FOLLOWS, **builders.remembered(dict.fromkeys(attempts, 2), incident)}
    job = builders.with_status(of(), status)
    old = [builders.deleting(builders.pod(job, "worker-1", builders.running(), attempt=one), at(5), 60) for one in lost]
    found = explain(builders.situation(job, *builders.all_pods(job).values(), *old, now=at(81)))
    assert isinstance(found, Restart)
    assert (found.restarts, found.incident.charged, found.incident.uncharged) == (restarts, 2 - restarts, restarts)
    assert found.first.pod == f"digits-worker-1-{min(lost)}"


def test_a_parameter_servers_current_pod_explains_its_chiefs_error_too():
    status = {"lastFailure": FOLLOWS, **builders.remembered({"chief-0": 1}, INCIDENT)}
    job = builders.with_status(of("ParameterServer"), status)
    pods = builders.all_pods(job)
    pods["ps-1"] = builders.deleting(pods["ps-1"], at(6))
    found = explain(builders.situation(job, *pods.values(), now=at(7)))
    assert isinstance(found, Restart)
    assert (found.first.task.id, found.incident.charged) == ("ps-1", 0)
    late = builders.situation(job, *pods.values(), now=at(46))  # asked for after its time
    assert not isinstance(explain(late), Restart)


@pytest.mark.parametrize(
    ("program", "code", "others", "seconds", "waits"),
    [
        (False, 1, builders.running(), 0, True),
        (False, 1, builders.running(), 59, True),
        (False, 1, builders.running(), 60, False),
        (False, 1, builders.running(), -3600, False),  # a node's clock is ahead
        (False, 1, builders.ended(1, at(3)), 5, False),
        (False, 1, builders.unschedulable(), 5, False),
        (False, 137, builders.running(), 5, False),
        (True, 1, builders.running(), 5, False),
        (True, 76, builders.running(), 5, True),
    ],
)
def test_the_end_waits_until_a_silent_peers_node_would_have_been_noticed(program, code, others, seconds, waits):
    job = of(program=program)
    pods = builders.all_pods(job, chief_0=builders.ended(code, NOW), worker_0=others, worker_1=others)
    situation = builders.situation(job, *pods.values(), now=at(seconds))
    failure = failed(situation, "chief-0")
    assert wait_for_late_reports(situation, failure) == (Wait(at(60), failure) if waits else None)


@pytest.mark.parametrize("ahead", [1.5, 400, -400])
@pytest.mark.parametrize(("seconds", "waits"), [(0, True), (59, True), (60, False)])
def test_the_end_waits_as_long_where_a_nodes_clock_is_wrong(ahead: float, seconds: float, waits: bool):
    """By the operator's own clock the job has not run since then; at first it still says that it runs."""
    job = of()
    pods = builders.all_pods(job, chief_0=builders.ended(1, at(ahead)))
    ran = set_condition(Status(), "Running", True, "AllTasksRunning", "", at(-3600))
    stopped = ran if not seconds else set_condition(ran, "Running", False, "Error", "", NOW)
    ran_once = Activity(since=at(-3600), all_ran_time=at(-3600))
    situation = builders.situation(job, *pods.values(), now=at(seconds), conditions=stopped.conditions, active=ran_once)
    found = wait_for_late_reports(situation, failed(situation, "chief-0"))
    assert isinstance(found, Wait) is (waits or (ahead == 1.5 and seconds == 60))
    if waits and abs(ahead) > 60:
        assert isinstance(found, Wait)
        assert found.until == at(60)


@pytest.mark.parametrize(
    ("status", "seconds", "waits"),
    [
        ({**builders.ended(143, NOW), "phase": "Running"}, 1, True),
        ({**builders.ended(143, NOW), "phase": "Running"}, 10, False),
        (builders.ended(143, NOW), 1, False),
        ({**builders.out_of_memory(NOW), "phase": "Running"}, 1, False),
        (builders.ended(2, at(1.5)), 0, False),  # nothing follows from it, though a node's clock is ahead
    ],
)
def test_the_end_waits_until_the_pod_has_ended_with_its_container(status: dict[str, Any], seconds: float, waits: bool):
    job = builders.job("Mirrored")
    situation = builders.situation(job, builders.pod(job, "chief-0", status), now=at(seconds))
    failure = failed(situation, "chief-0")
    assert wait_for_late_reports(situation, failure) == (Wait(at(10), failure) if waits else None)


@pytest.mark.parametrize(
    ("strategy", "lost", "again"),
    [("MultiWorkerMirrored", "worker-1", "worker-1"), ("ParameterServer", "ps-1", "worker-1")],
)
def test_a_later_failure_of_the_lost_ones_successor_hides_nothing(strategy: str, lost: str, again: str):
    """The status has it for the first failure while the job waits, before it ends, for what its nodes may tell."""
    job = of(strategy)
    pods = builders.all_pods(job)
    attempts = Attempts(exceptions=dict.fromkeys(pods, 1))
    incident = builders.incident(errors=Errors(began=NOW, count=1, attempts=Attempts()))
    old = conditions(pods[lost], TAINTED)
    successors = [builders.pod(job, task, builders.running(), attempt=1) for task in pods]
    pending = LastFailure(task=again, pod=f"digits-{again}-1", cause="Error", exit_code=1)
    situation = builders.situation(
        job, *successors, old, now=at(80), incident=incident, attempts=attempts, last_failure=pending
    )
    found = explain(situation)
    assert isinstance(found, Restart)
    assert (found.first.task.id, found.incident.cause) == (lost, Cause.DISRUPTION)
