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


def test_a_drain_whose_end_shows_after_its_peers_errors_is_not_charged():
    history = plain()
    drained = builders.deleting(history.pods["digits-worker-1-0"], NOW, 60)
    drained["status"]["conditions"] = [DRAINED]
    history.pods["digits-worker-1-0"] = drained
    assert history.look(at(1))["phase"] == "Running"
    peers_fail(history, at(2))
    status = history.look(at(2))
    assert (status["phase"], history.charged, status["restarts"]["causes"]) == ("Restarting", 0, {"Disruption": 1})
    assert status["lastFailure"]["task"] == "worker-1"


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


@pytest.mark.parametrize("restarts", [0, 1, 2, 10])
def test_a_lost_node_is_not_charged_though_the_group_fails_again_and_again_before_it_is_noticed(restarts: int):
    """The scheduler puts worker 1's successors on the silent node, and its peers cannot resolve its name there."""
    history, now = plain(restarts), 9.0
    for name, pod in history.pods.items():
        pod["spec"]["nodeName"] = "lost" if "worker-1" in name else "well"
    while now < 51:
        peers_fail(history, at(now))
        history.look(at(now + 2))
        gone = [name for name, pod in history.pods.items() if "deletionTimestamp" in pod["metadata"]]
        history.goes(*[name for name in gone if "worker-1" not in name])
        history.look(at(now + 12))
        for name, pod in history.pods.items():
            if name != "digits-worker-1-0" and "worker-1" in name:
                pod["spec"]["nodeName"], pod["status"] = "lost", {"phase": "Pending"}
        now += 15
    silent = [{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]
    history.pods["digits-worker-1-0"]["status"]["conditions"] = silent
    for _ in range(3):
        now += 1
        status = history.look(at(now))
        assert status["phase"] != "Failed"
    assert (history.charged, status["restarts"]["causes"].keys()) == (0, {"Disruption"})


def test_an_operator_that_sleeps_until_something_is_due_sees_a_lost_nodes_pod():
    """Nobody writes anything on it: the restart deleted it before the node was missed."""
    history = plain(restarts=1)
    peers_fail(history, at(9))
    history.look(at(11))
    history.goes("digits-chief-0-0", "digits-worker-0-0")
    history.look(at(12))
    assert history.charged == 1
    due = history.plan(at(13)).look_again_at
    assert due == at(11 + 60 + 15)
    history.look(due)
    assert (history.charged, history.job.status["lastFailure"]["message"]) == (0, "was lost with its node")
    assert history.plan(due + timedelta(seconds=1)).status is None


def test_a_program_that_fails_by_itself_is_charged_at_once():
    history = plain()
    for task in ("chief-0", "worker-0", "worker-1"):
        history.ends(task, builders.ended(1, at(1), message="ValueError: bad shape"))
    status = history.look(at(3))
    assert (status["phase"], status["reason"]) == ("Failed", "MaxRestartsExceeded")
    assert status["lastFailure"]["task"] == "chief-0"


def test_a_program_whose_peers_hang_is_charged_a_minute_later():
    history = plain()
    history.ends("chief-0", builders.ended(1, at(1)))
    assert history.look(at(3))["phase"] == "Restarting"
    due = history.plan(at(4)).look_again_at
    assert due == at(61)
    status = history.look(due)
    assert (status["phase"], status["lastFailure"]["task"]) == ("Failed", "chief-0")


def test_a_process_that_ran_out_of_memory_outranks_a_drain_under_way():
    history = plain(restarts=1)
    history.pods["digits-worker-1-0"] = builders.deleting(history.pods["digits-worker-1-0"], NOW, 60)
    history.ends("worker-0", builders.out_of_memory(at(1)))
    history.ends("chief-0", builders.ended(1, at(1)))
    status = history.look(at(3))
    assert (history.charged, status["restarts"]["causes"]) == (1, {"OOMKilled": 1})


def test_a_failing_init_container_does_not_hold_the_group_back_for_ever():
    history = plain(restarts=1)
    fetch = {"name": "fetch", "state": {"terminated": {"exitCode": 3, "finishedAt": "2026-11-21T10:00:01Z"}}}
    history.ends("worker-1", {"phase": "Failed", "initContainerStatuses": [fetch]})
    history.look(at(4))
    assert (history.charged, history.job.status["lastFailure"]["task"]) == (1, "worker-1")


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


def test_a_pod_that_exceeds_its_storage_limit_again_and_again_fails_the_job():
    history = History(builders.job())
    assert loop(history, lambda now: builders.evicted("Evicted", FULL), 2000) == 10
    status = history.job.status
    assert status["restarts"] == {"total": 10, "causes": {"StorageLimitExceeded": 10}}
    assert status["reason"] == "MaxRestartsExceeded"


@pytest.mark.parametrize(
    ("policy", "bound"),
    [({}, 100), ({"maxDisruptionsWithoutProgress": 3}, 3), ({"maxDisruptionsWithoutProgress": 0}, 0)],
)
def test_restarts_that_are_not_charged_end_too_where_nothing_comes_of_them(policy: dict[str, int], bound: int):
    history = History(builders.job(failurePolicy=policy))
    assert loop(history, lambda now: builders.rejected("UnexpectedAdmissionError"), 2000) == bound
    status = history.job.status
    assert (status["phase"], status["reason"]) == ("Failed", "MaxDisruptionsExceeded")


@pytest.mark.parametrize(("every", "restarts"), [(601, 200), (590, 3)])
def test_disruptions_with_long_runs_between_them_do_not_use_up_the_budget(every: float, restarts: int):
    history = History(builders.job(failurePolicy={"maxDisruptionsWithoutProgress": 3}))
    assert loop(history, lambda now: builders.disrupted(when=now), 200, every) == restarts


def test_a_job_that_dies_five_minutes_after_each_start_keeps_its_count():
    history = History(builders.job())
    assert loop(history, lambda now: builders.ended(1, now), 9, every=300) == 9
    incident = history.job.status["internal"]["incident"]
    waited = datetime.fromisoformat(incident["notBefore"]) - datetime.fromisoformat(incident["startedAt"])
    assert (incident["inARow"], waited) == (9, timedelta(seconds=300))


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
    assert len(json.dumps(status, separators=(",", ":"))) < 2000
    old = [name for name in history.pods if name.endswith("-0") and "evaluator" not in name]
    history.goes(*old)
    history.look(at(700))
    status = history.look(at(701))
    assert status["phase"] == "Running"
    assert {topology.attempt_of(pod) for pod in history.pods.values() if labels.task_id(pod) != "evaluator-0"} == {1}


@pytest.mark.parametrize(
    "policy",
    [
        {"maxRestartsWithoutProgress": 0, "maxDisruptionsWithoutProgress": 3},
        {
            "maxDisruptionsWithoutProgress": 3,
            "rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}],
        },
    ],
    ids=["no restarts", "a rule"],
)
def test_a_lost_node_a_day_is_no_row_though_what_it_was_is_waited_for(policy: dict[str, Any]):
    history = History(builders.job(program=False, failurePolicy=policy))
    for day in range(1, 6):
        then = day * 86400
        mine = [name for name, pod in history.pods.items() if labels.task_id(pod) == "worker-1"]
        newest = max(mine, key=lambda name: topology.attempt_of(history.pods[name]))
        for name, pod in history.pods.items():
            pod["spec"]["nodeName"] = f"of-{name}"
        peers_fail(history, at(then + 9))
        for seconds in (9, 11, 12, 30, 49):
            history.look(at(then + seconds))
        history.pods[newest]["status"]["conditions"] = [
            {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}
        ]  # fmt: skip
        incident = history.look(at(then + 51))["internal"]["incident"]
        assert (incident["cause"], incident["uncharged"], incident["inARow"]) == ("Disruption", 1, 1)
        history.end_what_is_deleted()
        history.look(at(then + 120))
        assert history.look(at(then + 121))["phase"] == "Running"


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


@pytest.mark.parametrize(("reason", "code"), [("Unknown", 255), ("ContainerStatusUnknown", 137)])
def test_a_node_that_restarts_under_an_init_container_is_not_charged(reason: str, code: int):
    history = History(builders.job("Mirrored", failurePolicy={"maxRestartsWithoutProgress": 0}))
    fetch = {"name": "fetch", "state": {"terminated": {"exitCode": code, "reason": reason, "finishedAt": None}}}
    history.ends("chief-0", {"phase": "Failed", "initContainerStatuses": [fetch]})
    status = history.look(at(5))
    assert (status["phase"], history.charged, status["restarts"]["causes"]) == ("Restarting", 0, {"Disruption": 1})
    how = f"init container fetch ended with an unknown exit code ({reason})"
    assert status["lastFailure"]["message"] == f"never started: {how}"


def test_an_init_containers_end_without_a_time_is_not_waited_for_without_end():
    history = plain(restarts=1)
    fetch = {"name": "fetch", "state": {"terminated": {"exitCode": 7, "reason": "Error"}}}
    history.ends("worker-1", {"phase": "Failed", "initContainerStatuses": [fetch]})
    for seconds in (4, 7, 10):
        status = history.look(at(seconds))
    assert status["restarts"]["total"] == 1


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
