# SPDX-License-Identifier: Apache-2.0
"""failure-rules.md and failure-policies.md in docs: each block is taken, and does what the page says when pods fail."""

from typing import Any

import pytest

from dtjob.api.status.status import Status
from dtjob.crd.answers.problems import problems
from dtjob.objects.pod.environment import restart_signals
from tests.refusals.manifests import CHECKPOINT, PS_ROLES
from tests.refusals.manifests import job as manifest
from tests.unit.failure_rules_page import blocks
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World

BLOCKS = blocks()
ENDS, COUNTED, FREE, IGNORED, WAITS = "ends the job", "counted", "not counted", "ignored", "waits"
EVICTED, KILLED, OOM = builders.disrupted(), builders.ended(137), builders.out_of_memory()
DRAINED_42 = {**builders.ended(42), "conditions": EVICTED["conditions"]}
CONFIG_ISSUE = {**builders.ended(143), "conditions": [{"type": "ConfigIssue", "status": "True"}]}
BACK_OFF = builders.waiting("ImagePullBackOff", "no such image")


def code(number: int) -> dict[str, Any]:
    return builders.ended(number, reason="Error")


WHAT_THE_PAGE_SAYS: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "one-exit-code": [("worker-1", code(42), ENDS), ("ps-0", code(1), COUNTED), ("worker-0", EVICTED, FREE)],
    "shape": [
        ("worker-1", code(42), ENDS),
        ("ps-0", code(42), COUNTED),
        ("chief-0", code(3), COUNTED),
        ("worker-0", DRAINED_42, ENDS),  # the first rule that matches
        ("worker-0", EVICTED, FREE),
        ("ps-0", OOM, ENDS),
        ("worker-1", BACK_OFF, ENDS),
        ("evaluator-0", OOM, IGNORED),
        ("worker-1", builders.waiting("ErrImagePull"), WAITS),
    ],
    "crashes-in-new-pods": [
        *(("worker-1", code(128 + number), COUNTED) for number in (4, 6, 7, 8, 9, 11)),
        ("worker-1", code(1), COUNTED),
    ],
    "tfjob-on-failure": [("chief-0", code(1), COUNTED), ("ps-0", KILLED, COUNTED), ("worker-0", EVICTED, FREE)],
    "tfjob-always": [("chief-0", code(1), FREE), ("ps-0", OOM, FREE), ("worker-0", EVICTED, FREE)],
    "tfjob-never": [
        ("worker-1", code(1), ENDS),
        ("ps-0", KILLED, ENDS),
        ("chief-0", EVICTED, ENDS),
        ("evaluator-0", code(1), COUNTED),
        ("worker-1", BACK_OFF, WAITS),
    ],
    "tfjob-never-but-disrupted": [("worker-1", KILLED, ENDS), ("worker-1", EVICTED, FREE)],
    "tfjob-exit-code": [
        *(("worker-1", code(number), ENDS) for number in (1, 42, 127)),
        *(("worker-1", code(number), COUNTED) for number in (76, 128, 137, 139, 255)),
        ("worker-1", {**code(1), "conditions": EVICTED["conditions"]}, FREE),
    ],
    "tfjob-by-role": [("ps-0", code(1), COUNTED), ("worker-0", code(1), ENDS), ("chief-0", KILLED, ENDS)],
    "jobset-fail": [("chief-0", code(1), ENDS), ("worker-0", code(1), COUNTED)],
    "jobset-restart": [("worker-0", OOM, COUNTED), ("chief-0", code(1), ENDS), ("worker-1", EVICTED, COUNTED)],
    "jobset-restart-uncounted": [("worker-0", EVICTED, FREE), ("worker-0", code(1), ENDS)],
    "job-fail": [("worker-0", code(42), ENDS), ("worker-0", code(1), COUNTED)],
    "job-ignore": [("worker-0", DRAINED_42, FREE), ("worker-0", code(42), ENDS), ("worker-0", code(3), COUNTED)],
    "job-count": [("worker-0", code(1), COUNTED), ("worker-0", code(2), ENDS)],
    "job-config-issue": [
        ("worker-0", CONFIG_ISSUE, ENDS),
        ("worker-0", code(143), COUNTED),
        *(("ps-0", builders.waiting(one), ENDS) for one in ("InvalidImageName", "CreateContainerConfigError")),
    ],
}
CASES = [(name, *case) for name, cases in WHAT_THE_PAGE_SAYS.items() for case in cases]


def test_every_block_is_tested() -> None:
    assert list(WHAT_THE_PAGE_SAYS) == list(BLOCKS)


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_is_taken(name: str) -> None:
    roles = {**PS_ROLES, "evaluator": {}}
    whole = manifest("ParameterServer", replicaSpecs=roles, checkpoint=CHECKPOINT, failurePolicy=BLOCKS[name])
    assert problems(whole) == []


@pytest.mark.parametrize(("name", "task", "status", "outcome"), CASES)
def test_a_block_does_what_the_page_says(name: str, task: str, status: dict[str, Any], outcome: str) -> None:
    """A group of which one pod comes to this status, under the operator's own store, queue and plan."""
    job = builders.job("ParameterServer", workers=2, ps=1, evaluator=True, failurePolicy=BLOCKS[name])
    with World(job) as world:
        world.run(1)
        for pod in world.pods:
            world.cluster.change("Pod", pod, lambda one: one.update(status=builders.running()))
        world.run(1)
        assert world.job.status["phase"] == "Running"
        world.cluster.change("Pod", f"digits-{task}-0", lambda one: one.update(status=status))
        world.run(30)
        assert came_to(world.job.status, task) == outcome
        if outcome == ENDS and name != "tfjob-never-but-disrupted" and name != "jobset-restart-uncounted":
            assert world.job.status["reason"] == "PodFailurePolicy"
            assert "failurePolicy.rules[" in world.job.status["message"]


@pytest.mark.parametrize(("name", "signals"), [("crashes-in-new-pods", 0), ("tfjob-always", 0), ("job-fail", 6)])
def test_each_block_gives_the_number_of_restart_signals(name: str, signals: int) -> None:
    job = builders.job("MultiWorkerMirrored", failurePolicy=BLOCKS[name])
    assert len(restart_signals(job, builders.task("worker-1"))) == signals


def came_to(status: dict[str, Any], task: str) -> str:
    """What has become of a job with one failure."""
    if status["phase"] == "Failed":
        return ENDS
    if task == "evaluator-0":
        replaced = status["restarts"] == {"total": 0, "evaluator": 1}
        return COUNTED if replaced else IGNORED if Status.read(status).internal.attempts.of(task) == 0 else "?"
    incident = Status.read(status).internal.incident
    if incident is None:
        return WAITS
    assert status["restarts"]["total"] == 1
    return {1: COUNTED, 0: FREE}[incident.charged]
