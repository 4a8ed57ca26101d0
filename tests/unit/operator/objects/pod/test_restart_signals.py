# SPDX-License-Identifier: Apache-2.0
"""Over which signals a supervisor starts its training process again by itself."""

from typing import Any

import pytest

from dtjob.objects.pod.environment import CRASHES, environment, restart_signals
from tests.unit.operator import builders

ALL = {one.value for one in CRASHES}
PS = {
    "strategy": "ParameterServer",
    "replicaSpecs": {"chief": {}, "worker": {"replicas": 2}, "ps": {}, "evaluator": {}},
}


def of(task: str, **spec: Any) -> set[str]:
    return {one.value for one in restart_signals(builders.job(**spec), builders.task(task))}


def under(rule: dict[str, Any], task: str = "worker-0") -> set[str]:
    """What is left beside this rule."""
    return of(task, failurePolicy={"rules": [{"action": "Restart", **rule}]})


def test_the_default_restart_signals_are_those_of_crashes_and_sigkill():
    assert of("chief-0") == of("worker-0") == ALL
    assert not ALL & {"SIGTERM", "SIGINT", "SIGHUP"}


@pytest.mark.parametrize("task", ["worker-0", "ps-0", "evaluator-0"])
def test_a_task_that_trains_no_steps_gets_a_new_pod(task: str):
    assert of("chief-0", **PS) == ALL
    assert of(task, **PS) == set()


def test_a_job_without_restarts_has_no_restart_signals():
    assert of("worker-0", failurePolicy={"maxRestartsWithoutProgress": 0}) == set()
    assert of("worker-0", failurePolicy={"maxRestarts": 0}) == set()
    assert restart_signals(builders.job(program=False), builders.task("worker-0")) == ()


@pytest.mark.parametrize(
    ("rule", "taken"),
    [
        ({"onSignals": ["SIGSEGV", "SIGTERM"]}, {"SIGSEGV"}),
        ({"onExitCodes": {"operator": "In", "values": [137, 1]}}, {"SIGKILL"}),
        ({"onExitCodes": {"operator": "In", "values": [1]}}, set()),
        ({"onExitCodes": {"operator": "NotIn", "values": [137]}}, ALL - {"SIGKILL"}),
        ({"onReasons": ["OOMKilled"]}, ALL),
        ({"onReasons": ["Error"]}, ALL),
        ({"onReasons": ["Evicted", "ImagePullBackOff"]}, set()),
        ({"onPodConditions": [{"type": "DisruptionTarget"}]}, set()),
        ({"roles": ["worker"]}, ALL),
        ({"roles": ["chief"]}, set()),
        ({"roles": ["chief"], "onSignals": ["SIGKILL"]}, set()),
    ],
)
def test_a_rule_that_may_be_about_it_has_the_pod_end(rule: dict[str, Any], taken: set[str]):
    assert under(rule) == ALL - taken


def test_the_environment_of_a_supervisor_has_the_names_of_its_restart_signals():
    job = builders.job(failurePolicy={"rules": [{"action": "FailJob", "onSignals": ["SIGBUS"]}]})
    told = {one["name"]: one.get("value") for one in environment(job, builders.task("worker-0"), 0)}
    assert told["DTJOB_RESTART_SIGNALS"] == "SIGABRT,SIGFPE,SIGILL,SIGKILL,SIGSEGV"
    job = builders.job(failurePolicy={"maxRestartsWithoutProgress": 0})
    assert "DTJOB_RESTART_SIGNALS" not in {one["name"] for one in environment(job, builders.task("worker-0"), 0)}
