# SPDX-License-Identifier: Apache-2.0
"""A stall: counted once, the straggler named, and who is replaced over it."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects.topology import tasks
from dtjob.plan.actions import Create, Plan
from dtjob.plan.failure.restart import failures
from dtjob.plan.failure.stalled import MOST_REPORTERS, reporters, silent_stragglers
from dtjob.plan.seen.children import Children, Silence
from tests.unit.operator import builders
from tests.unit.operator.builders import at
from tests.unit.operator.ruled import planned, ruled

SILENT = "its supervisor is silent"
POLICY = {"stallTimeoutSeconds": 600, "backoff": {"initialSeconds": 0, "maxSeconds": 0}}
ON_STALLS = {"action": "FailJob", "onReasons": ["Stalled"]}


def mirrored(**policy: Any) -> Job:
    return builders.job(failurePolicy={**POLICY, **policy}, checkpoint={"storage": {"volume": {"emptyDir": {}}}})


def servers() -> Job:
    return builders.job("ParameterServer", ps=1, failurePolicy=POLICY)


def test_the_straggler_alone_is_replaced_and_everything_names_it():
    """Its peers start again in their containers."""
    after, plan = planned(mirrored(), {"worker-1": builders.stalled("worker-1")})
    status = after.status
    assert status["internal"]["attempts"]["exceptions"] == {"worker-1": 1}
    assert status["restarts"] == {"total": 1, "causes": {"Stalled": 1}}
    assert status["internal"]["incident"].get("charged", 0) == 1
    failed = status["lastFailure"]
    assert (failed["task"], failed["cause"], failed["exitCode"]) == ("worker-1", "Stalled", 77)
    assert "line 7 in examples" in failed["logTail"], "where its threads were"
    (told,) = (event for event in plan.events if event.type == "Warning" and "stalled" in event.message)
    assert told.message.startswith("worker-1 stalled after step 120, in its data function (exit code 77); training")
    assert [one.name for one in plan.actions if isinstance(one, Create) and one.kind == "Pod"] == ["digits-worker-1-1"]


def test_a_silent_straggler_is_replaced_with_the_one_that_waited_for_it():
    after, plan = planned(servers(), {"chief-0": builders.stalled("worker-1", SILENT)})
    assert after.status["internal"]["attempts"]["exceptions"] == {"chief-0": 1, "worker-1": 1}
    how = f"chief-0 stalled after step 120, waiting for worker-1: {SILENT} (exit code 77)"
    assert [event.message for event in plan.events if how in event.message]


@pytest.mark.parametrize("state", [builders.unschedulable(), builders.ended(0)])
def test_a_straggler_that_does_not_run_is_not_replaced_over_a_stall(state: dict[str, Any]):
    """It may be waiting for a node since before."""
    job = builders.with_status(servers(), {"allCreated": True})
    pods = builders.all_pods(job, chief_0=builders.stalled("worker-1", SILENT), worker_1=state)
    situation = builders.situation(job, *pods.values(), now=at(20))
    assert silent_stragglers(situation, failures(situation)) == []


def waiting_for(silent: Any, job: Job | None = None, **pods: dict[str, Any]) -> tuple[Job, Plan]:
    """The plan where the chief says that these attempts are silent; `pods` are not running, but so."""
    job = builders.with_status(job or mirrored(), {"allCreated": True})
    there = builders.all_pods(job, **pods)
    report = {"jobUid": job.metadata.uid, "attempt": 0, "state": "waiting", "silent": silent}
    return builders.looked(job, Children(tuple(there.values()), {"chief-0": report}), at(20))


def test_a_running_silent_task_that_the_chief_waits_for_is_replaced():
    """Frozen with its container: its peers have started again, and nobody can tell it to end."""
    after, plan = waiting_for({"worker-1": 0})
    assert after.status["internal"]["attempts"]["exceptions"] == {"worker-1": 1}
    assert after.status["restarts"] == {"total": 1, "causes": {"Stalled": 1}}
    assert after.status["internal"]["incident"].get("charged", 0) == 1
    how = "worker-1 stalled: its supervisor is silent, and its group waits for it"
    assert [event.message for event in plan.events if event.message.startswith(how)]
    assert after.status["lastFailure"]["pod"] == "digits-worker-1-0"


MARKED = {
    **builders.running(),
    "conditions": [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "False"}],
}
"""As the node controller leaves a pod whose node does not answer."""


def on_a_node_of_its_own(pods: dict[str, Any], task: str) -> None:
    for name, one in pods.items():
        one["spec"]["nodeName"] = "node-2" if name == task else "node-1"


def later(job: Job, seconds: float, old: dict[str, Any]) -> Job:
    """The job at a later look: worker-1's pod was deleted over its silence, its successor waits, the others run."""
    pods = builders.all_pods(job, worker_1={})
    on_a_node_of_its_own(pods, "worker-1")
    earlier = builders.deleting(builders.pod(job, "worker-1", old, attempt=0), at(20))
    earlier["spec"]["nodeName"] = "node-3"
    return builders.looked(job, Children((*pods.values(), earlier)), at(seconds))[0]


@pytest.mark.parametrize(
    ("seconds", "old", "cause", "charged"),
    [
        (64, builders.running(), "Stalled", 1),  # it is given its time to end
        (66, builders.running(), "Disruption", 0),
        (45, MARKED, "Disruption", 0),
        (300, MARKED, "Disruption", 0),
    ],
)
def test_a_silent_task_on_a_lost_node_is_not_charged(seconds: float, old: dict[str, Any], cause: str, charged: int):
    """Its peers notice before Kubernetes does. Whoever is only frozen is killed when its grace period is over."""
    after = later(waiting_for({"worker-1": 0})[0], seconds, old)
    assert after.status["restarts"] == {"total": 1, "causes": {cause: 1}}
    assert after.status["internal"]["incident"].get("charged", 0) == charged
    assert after.status["lastFailure"]["pod"] == "digits-worker-1-0"


def test_a_task_that_is_silent_on_a_node_that_does_not_answer_has_not_stalled():
    job = builders.with_status(mirrored(maxRestartsWithoutProgress=0), {"allCreated": True})
    pods = builders.all_pods(job, worker_1=MARKED)
    on_a_node_of_its_own(pods, "worker-1")
    report = {"jobUid": job.metadata.uid, "attempt": 0, "state": "waiting", "silent": {"worker-1": 0}}
    made = builders.plan_answered(job, Children(tuple(pods.values()), {"chief-0": report}), at(20))
    assert (made.status["phase"], made.status["restarts"]["causes"]) == ("Restarting", {"Disruption": 1})


@pytest.mark.parametrize(
    ("silent", "job", "pods"),
    [
        ({"worker-1": 1}, mirrored(), {}),
        ({"worker-1": 0}, mirrored(), {"worker_1": builders.unschedulable()}),
        ({"worker-1": 0}, builders.job(), {}),
        ({"chief-0": 0, "nobody-3": 0}, mirrored(), {}),
        ("worker-1", mirrored(), {}),
    ],
)
def test_no_other_silence_is_a_stall(silent: Any, job: Job, pods: dict[str, Any]):
    """Of another attempt, of a pod that waits for its node, in a job that asks for nothing, of nobody else."""
    after, _ = waiting_for(silent, job, **pods)
    assert after.status.get("restarts", {}).get("total", 0) == 0


def told_of_the_chief(
    reports: dict[str, dict[str, Any]], job: Job | None = None, silences: tuple[str, ...] = ("chief-0",), **chief: Any
) -> tuple[Job, Plan]:
    """The plan where these tasks say so, and the status of `silences` cannot be read; `chief` is how its pod is."""
    job = builders.with_status(job or mirrored(), {"allCreated": True})
    there = builders.all_pods(job, chief_0=chief or builders.running())
    said = {
        task: {"jobUid": job.metadata.uid, "attempt": 0, "state": "waiting", **report}
        for task, report in reports.items()
    }
    silent = {
        task: Silence(there[task]["metadata"]["uid"], f"{task}:2223", at(10), "ConnectTimeout", "no answer")
        for task in silences
    }
    return builders.looked(job, Children(tuple(there.values()), said, silences=silent), at(20))


WAITS_FOR_CHIEF: dict[str, Any] = {"silent": {"chief-0": 0}}


@pytest.mark.parametrize(
    "reports",
    [
        {"worker-0": WAITS_FOR_CHIEF},
        {"worker-0": WAITS_FOR_CHIEF, "worker-1": WAITS_FOR_CHIEF},
        {"worker-0": {}, "worker-1": WAITS_FOR_CHIEF},
        {"worker-0": WAITS_FOR_CHIEF, "chief-0": {"silent": {"worker-1": 0}}},
    ],
)
def test_a_silent_chief_that_others_wait_for_is_replaced(reports: dict[str, dict[str, Any]]):
    """Frozen with its container. One of the others is enough, as a new one has never heard the chief; what the chief
    said before that is of before."""
    after, plan = told_of_the_chief(reports)
    assert after.status["internal"]["attempts"]["exceptions"] == {"chief-0": 1}
    assert after.status["restarts"] == {"total": 1, "causes": {"Stalled": 1}}
    assert after.status["internal"]["incident"].get("charged", 0) == 1
    assert [event for event in plan.events if event.message.startswith("chief-0 stalled: its supervisor is silent")]
    again, _ = told_of_the_chief(reports, after)
    assert again.status["restarts"] == after.status["restarts"], "they waited for the attempt before"


@pytest.mark.parametrize(
    ("reports", "more"),
    [
        ({}, {}),
        ({"worker-0": {}, "worker-1": {}}, {}),
        ({"worker-0": {"silent": {"worker-1": 0}}}, {}),
        ({"worker-0": {"silent": {"chief-0": 1}}}, {}),
        ({"worker-0": {"silent": ["chief-0"]}}, {}),
        ({"worker-0": {**WAITS_FOR_CHIEF, "attempt": 1}}, {}),
        ({"worker-0": WAITS_FOR_CHIEF, "chief-0": {}}, {"silences": ()}),
        ({"worker-0": WAITS_FOR_CHIEF}, {"silences": ("chief-0", "worker-0")}),
        ({"worker-0": WAITS_FOR_CHIEF}, {"job": builders.job()}),
        ({"worker-0": WAITS_FOR_CHIEF}, builders.unschedulable()),
    ],
)
def test_the_chiefs_silence_is_no_stall_by_itself(reports: dict[str, dict[str, Any]], more: dict[str, Any]):
    """Nobody else waits for it; or for another attempt; or it speaks itself; or who said so is silent since; or the
    job asks for nothing; or its pod waits for a node."""
    after, _ = told_of_the_chief(reports, **more)
    assert after.status.get("restarts", {}).get("total", 0) == 0


def asked(job: Job, *silences: str, chief_uid: str = "uid-chief-0", away: tuple[str, ...] = ()) -> list[str]:
    """Who is asked beside the chief where these are silent."""
    silent = {task: Silence(f"uid-{task}", "10.0.0.7:2223", at(0), "ConnectTimeout", "") for task in silences}
    running = {task.id: f"uid-{task.id}" for task in tasks(job) if task.id not in away}
    return reporters(job, Children(silences=silent), running | {"chief-0": chief_uid})


def test_the_first_workers_are_asked_for_reports_if_the_chief_is_silent():
    """The first of its group, and others for those of them that are silent as well; of a large job only some."""
    large = builders.job(workers=100, failurePolicy=POLICY)
    first = ["worker-0", "worker-1", "worker-2"]
    assert asked(large) == []
    assert asked(large, "chief-0") == first
    assert asked(large, "chief-0", "worker-1", "worker-7") == [*first, "worker-3"]
    assert asked(large, "chief-0", away=("worker-0",)) == ["worker-1", "worker-2", "worker-3"]
    assert len(asked(large, "chief-0", *(f"worker-{index}" for index in range(100)))) == MOST_REPORTERS
    assert asked(large, "chief-0", chief_uid="uid-of-its-next-pod") == []
    assert asked(builders.job(workers=100), "chief-0") == []
    assert asked(servers(), "chief-0") == [], "they know of no steps"
    assert asked(builders.job(evaluator=True, failurePolicy=POLICY), "chief-0") == ["worker-0", "worker-1"]


def test_a_rule_matches_a_stall_by_its_reason():
    job = ruled(ON_STALLS, policy={"stallTimeoutSeconds": 600})
    after, _ = planned(job, {"worker-1": builders.stalled("worker-1")})
    assert (after.status["reason"], after.status["lastFailure"]["cause"]) == ("PodFailurePolicy", "Stalled")
    after, _ = planned(job, {"worker-1": builders.failed(77, stepped=True)})
    assert after.status["restarts"]["causes"] == {"Error": 1}, "a program's own exit code"
