# SPDX-License-Identifier: Apache-2.0
"""What is charged to a job, and what it costs it, through histories of whole plans."""

import json
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any

import pytest

from dtjob.objects import labels, topology
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.plan.history import History

DRAINED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
TAINTED = {**DRAINED, "reason": "DeletionByTaintManager"}
FULL = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '


def plain(restarts: int = 0, **spec: Any) -> History:
    """A chief and two workers of an image that knows nothing of dtjob."""
    return History(builders.job(program=False, failurePolicy={"maxRestartsWithoutProgress": restarts}, **spec))


def peers_fail(history: History, when: datetime) -> None:
    """Chief and worker 0 lose worker 1."""
    for task in ("chief-0", "worker-0"):
        history.ends(task, builders.ended(1, when))


def test_a_node_shutdown_that_shows_after_the_restart_gives_the_charge_back():
    """The kubelet says so only when all containers have ended, and a process at once when it loses its peers."""
    history = plain(restarts=1)
    peers_fail(history, at(1))
    history.look(at(4))
    assert (history.charged, history.job.status["restarts"]["causes"]) == (1, {"Error": 1})
    ended = {**builders.disrupted("TerminationByKubelet", at(9)), "reason": "Terminated"}
    history.pods["digits-worker-1-0"]["status"] = ended
    status = history.look(at(9))
    assert (history.charged, status["restarts"]) == (0, {"total": 1, "causes": {"Disruption": 1}})
    assert status["internal"]["incident"].get("counted", 0) == 0
    assert status["lastFailure"]["message"] == "was disrupted (TerminationByKubelet)"


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_lost_node_is_not_charged_though_it_is_noticed_late(restarts: int):
    """Its peers fail after 9 s, Kubernetes notices after 50 s and deletes its pods after 80 s."""
    history = plain(restarts)
    silent = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    peers_fail(history, at(9))
    history.look(at(9))
    for seconds in (11, 30, 49):
        status = history.look(at(seconds))
        assert status["phase"] != "Failed"
        assert status["lastFailure"]["message"] == "failed (exit code 1)"
    history.pods["digits-worker-1-0"]["status"]["conditions"] = silent
    history.look(at(51))
    lost = history.pods["digits-worker-1-0"]
    lost["status"]["conditions"] = [*silent, TAINTED]
    history.pods["digits-worker-1-0"] = builders.deleting(lost, at(80), 60)
    status = history.look(at(80))
    assert (status["phase"], history.charged) == ("Running", 0)
    assert status["restarts"] == {"total": 1, "causes": {"Disruption": 1}}
    assert {"digits-chief-0-1", "digits-worker-1-1"} <= history.pods.keys()


def loop(history: History, status: Any, times: int, every: float = 1) -> int:
    """Worker 1 ends like this `every` seconds after each start; how often it was started again."""
    now = NOW
    for restarts in range(times):
        history.ends("worker-1", status(now))
        if history.look(now)["phase"] == "Failed":
            return restarts
        history.end_what_is_deleted()
        incident = history.job.status["internal"]["incident"]
        now = max(now, datetime.fromisoformat(incident["notBefore"]))
        history.look(now)
        now += timedelta(seconds=every)
    return times


@pytest.mark.parametrize(
    ("policy", "bound"),
    [({}, 100), ({"maxDisruptionsWithoutProgress": 3}, 3), ({"maxDisruptionsWithoutProgress": 0}, 0)],
)
def test_restarts_that_are_not_charged_end_too_where_nothing_comes_of_them(policy: dict[str, int], bound: int):
    history = History(builders.job(failurePolicy=policy))
    assert loop(history, lambda now: builders.rejected("UnexpectedAdmissionError"), 2000) == bound
    status = history.job.status
    assert (status["phase"], status["reason"]) == ("Failed", "MaxDisruptionsExceeded")


def test_an_eviction_does_not_fail_a_job_whose_budget_was_lowered():
    history = History(builders.job())
    loop(history, lambda now: builders.ended(1, now), 5)
    assert history.charged == 5
    policy = history.job.spec.failure_policy.model_copy(update={"max_restarts_without_progress": 2})
    spec = history.job.spec.model_copy(update={"failure_policy": policy})
    history.job = history.job.model_copy(update={"spec": spec})
    history.ends("worker-1", builders.disrupted(when=at(2000)))
    assert history.look(at(2000))["phase"] == "Restarting"
    history.look(at(2300))
    history.ends("worker-1", builders.ended(1, at(2400)))
    status = history.look(at(2400))
    assert (status["phase"], status["reason"]) == ("Failed", "MaxRestartsExceeded")


def of_a_newer_operator(status: dict[str, Any]) -> dict[str, Any]:
    """The status with words that this version does not know wherever it has words of its own."""
    newer: dict[str, Any] = deepcopy(status)
    newer["phase"] = newer["reason"] = "Suspended"
    newer["restarts"]["causes"] = {"NodeMelted": 1}
    newer["lastFailure"] |= {"cause": "NodeMelted", "message": "was on a node that melted"}
    newer["internal"]["incident"]["cause"] = "NodeMelted"
    newer["conditions"] = [{**newer["conditions"][0], "type": "Suspended", "reason": "Melted", "status": "Unknown"}]
    newer["replicaStatuses"]["observer"] = {"replicas": 1, "frozen": 1}
    newer["internal"]["attempts"]["exceptions"]["observer-0"] = 1
    return newer


@pytest.mark.parametrize("program", [True, False])
def test_words_that_a_newer_operator_wrote_are_carried_and_never_raise(program: bool):
    history = History(builders.job(program=program))
    history.ends("worker-1", builders.ended(1, NOW))
    history.look(at(5))
    history.job = builders.with_status(history.job, of_a_newer_operator(history.job.status))
    status = history.look(at(6))
    assert status["internal"]["incident"]["cause"] == "NodeMelted"
    assert "Suspended" in {one["type"] for one in status["conditions"]}
    history.pods["digits-worker-0-" + ("0" if program else "1")]["status"] = builders.disrupted(when=at(7))
    status = history.look(at(7))
    assert status["restarts"]["causes"]["NodeMelted"] == 1
    history.look(at(100))
    history.ends("worker-0", builders.out_of_memory(at(600)))
    status = history.look(at(600))
    assert (status["internal"]["incident"]["cause"], status["restarts"]["causes"]["NodeMelted"]) == ("OOMKilled", 1)


def test_a_group_restart_of_a_big_job_is_a_small_status():
    history = History(builders.job(workers=399, program=False, evaluator=True))
    history.ends("worker-17", builders.out_of_memory(at(1)))
    status = history.look(at(2))
    assert status["internal"]["attempts"] == {"others": 1, "exceptions": {"evaluator-0": 0}}
    assert len(json.dumps(status, separators=(",", ":"))) < 2200
    old = [name for name in history.pods if name.endswith("-0") and "evaluator" not in name]
    history.goes(*old)
    history.look(at(700))
    status = history.look(at(701))
    assert status["phase"] == "Running"
    assert {topology.attempt_of(pod) for pod in history.pods.values() if labels.task_id(pod) != "evaluator-0"} == {1}


def test_errors_that_turn_out_to_be_disruptions_are_counted_as_these():
    history = History(
        builders.job(
            program=False, failurePolicy={"maxRestartsWithoutProgress": 10, "maxDisruptionsWithoutProgress": 3}
        )
    )
    now, found = 1, []
    while history.job.status["phase"] != "Failed" and len(found) < 10:
        peers_fail(history, at(now))
        history.look(at(now + 3))
        for name, pod in history.pods.items():
            if labels.task_id(pod) == "worker-1" and "deletionTimestamp" in pod["metadata"]:
                late = {**builders.disrupted("TerminationByKubelet", at(now + 4)), "reason": "Terminated"}
                history.pods[name]["status"] = late
        found.append(history.look(at(now + 5))["phase"])
        history.end_what_is_deleted()
        now += 400
        history.look(at(now))
        now += 1
        history.look(at(now))
    assert len(found) == 4
    assert history.job.status["reason"] == "MaxDisruptionsExceeded"


def test_a_program_that_ends_well_as_its_node_takes_its_pod_has_not_succeeded():
    """A kubelet sets no DisruptionTarget on a pod that is over its own limits; a sidecar shows that it has failed."""
    history = History(builders.job("Mirrored", program=False))
    taken = {**builders.ended(0, at(99)), "phase": "Failed", "reason": "Evicted", "message": FULL}
    history.ends("chief-0", taken)
    status = history.look(at(100))
    assert (status["phase"], status["restarts"]["causes"]) == ("Restarting", {"StorageLimitExceeded": 1})


def test_a_succeeded_job_counts_as_ready_its_tasks_that_were_not_seen_to_run():
    job = builders.job("Mirrored")
    waiting = builders.plan_answered(job, Children((builders.pod(job, "chief-0"),)), at(1))
    ended = {**builders.pod(job, "chief-0"), "status": builders.ended(0, at(2))}
    over = builders.plan_answered(builders.with_status(job, waiting.status or {}), Children((ended,)), at(3))
    assert over.status is not None
    assert (over.status["phase"], over.status["ready"]) == ("Succeeded", "1/1")
    later = builders.plan_answered(builders.with_status(job, over.status), Children(()), at(300))
    assert later.status is None or later.status["ready"] == "1/1"
