# SPDX-License-Identifier: Apache-2.0
"""A program that fails twice in the same way, without a newer checkpoint in between, fails its job."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.status.status import Status
from dtjob.plan.failure.same_mistake import REASON
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.story import Story

MISSING = "ModuleNotFoundError: No module named 'foo'"
KILLED_WITH_ITS_CONTAINER = {"message": json.dumps({"task": "chief-0", "attempt": 0, "stepped": False})}
OOM = builders.ended(137, reason="OOMKilled", **KILLED_WITH_ITS_CONTAINER)


class Run(Story):
    """One job, whose pods fail one after the other; the status is carried on."""

    def __init__(self, job: Job, **children: Any) -> None:
        super().__init__(job)
        self.seconds = 0
        self.children = Children(tuple(builders.all_pods(job).values()), **children)
        self.look(NOW)

    @property
    def status(self) -> dict[str, Any]:
        return self.job.status

    def fails(self, task: str = "chief-0", status: dict[str, Any] | None = None, **reports: Any) -> dict[str, Any]:
        """The task's current pod ends with this status; all that was replaced runs. Returns the job's status."""
        attempt = Status.read(self.status).internal.attempts.of(task)
        self._let(f"{task}-{attempt}", status or builders.failed(exception=MISSING), **reports)
        return self.status

    def suspended_for_a_while(self) -> None:
        """spec.suspend is true, and false again; then all that was made anew runs."""
        for suspend in (True, False):
            self.change(suspend=suspend)
            self._let("none", {})

    def _let(self, name: str, status: dict[str, Any], **reports: Any) -> None:
        self.seconds += 400
        status = deepcopy(status)
        for container in status.get("containerStatuses") or ():
            if "finishedAt" in (container["state"].get("terminated") or {}):
                container["state"]["terminated"]["finishedAt"] = times.rfc3339(at(self.seconds))
        self.becomes(name, status)
        self.children = replace(self.children, reports={**self.children.reports, **reports})
        for _ in range(4):
            self.look(at(self.seconds))
            self.seconds += 5
        for one in self.tasks:
            if not next(pod for pod in self.pods if pod["metadata"]["name"] == f"digits-{one}").get("status"):
                self.becomes(one, builders.running())
        self.look(at(self.seconds))


def of(strategy: str, *, restarts: int = 10, **more: Any) -> Run:
    policy = {"maxRestartsWithoutProgress": restarts, "backoff": {"initialSeconds": 0, "maxSeconds": 0}}
    return Run(builders.job(strategy, failurePolicy=policy, **more))


def single(**more: Any) -> Run:
    return of("Mirrored", **more)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (builders.failed(exception=MISSING), f"{MISSING} (chief-0, exit"),
        (builders.failed(3), "exit code 3 (chief-0"),
        (builders.failed(139), "SIGSEGV (chief-0"),
        (OOM, "give its container more memory"),
        (builders.ended(137, reason="OOMKilled", message=builders.last_line(137)), "out of memory (OOMKilled; chief-0"),
        (builders.failed(exception="OSError: [Errno 2] at 0x7f01"), "OSError: [Errno 2] at 0x7f01 (chief-0, exit"),
    ],
)
def test_a_program_that_fails_twice_alike_fails_the_job_and_is_quoted(end: dict[str, Any], words: str):
    run = single()
    assert run.fails(status=end)["phase"] != "Failed"
    status = run.fails(status=end)
    assert (status["phase"], status["reason"], status["restarts"]["total"]) == ("Failed", REASON, 1)
    assert status["lastFailure"]["beforeFirstStep"] is True
    assert words in status["message"]
    assert run.events[-1].message == status["message"]


TYPO = "KeyError: 'los'"


def typo(location: str = "train.py:8", exception: str = TYPO, step: int | None = 64, **more: Any) -> dict[str, Any]:
    """The end of a container whose program has a mistake in a callback, as long as training has come to this step."""
    return builders.failed(
        exception=exception, stepped=None if step is None else True, step=step, location=location, **more
    )


def evicted_too(status: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod that was evicted as well."""
    return {**status, "conditions": builders.disrupted()["conditions"]}


@pytest.mark.parametrize(
    "end",
    [
        builders.ended(1, message=f"Traceback\n{MISSING}"),  # no supervisor has told
        builders.failed(3, stepped=None),
        builders.failed(3, stepped=True),
        builders.failed(139, stepped=True),
        builders.failed(exception="ConnectionRefusedError: [Errno 111] refused", transient=True),
        builders.failed(76),
        builders.failed(71),
        builders.failed(137),  # killed, and not for memory
        builders.failed(143),
        builders.ended(137, reason="OOMKilled"),
        evicted_too(builders.failed(exception=MISSING)),
        typo(transient=True),  # the machine lacks something
        typo(exhausted=True),
    ],
)
def test_a_failure_that_need_not_be_the_programs_fault_uses_the_ordinary_budget(end: dict[str, Any]):
    run = single()
    for _ in range(3):
        run.fails(status=end)
    assert run.status["restarts"]["total"] == 3


@pytest.mark.parametrize("step", [64, None])
def test_the_same_exception_at_the_same_line_after_steps_fails_the_job_at_the_second_time(step: int | None):
    """Nobody knows the steps of a loop of the program's own: `step` is None then."""
    run = of("MultiWorkerMirrored")
    assert run.fails("worker-0", typo(step=step))["phase"] != "Failed"
    status = run.fails("chief-0", typo(step=step))
    assert (status["phase"], status["reason"]) == ("Failed", REASON)
    assert status["restarts"]["total"] == 1
    assert "twice in the same way: train.py:8: KeyError: 'los' (chief-0, exit code 1);" in status["message"]
    exception = status["lastFailure"]["exception"]
    assert exception == {"type": "KeyError", "message": "'los'", "location": "train.py:8"}


@pytest.mark.parametrize(
    ("between", "is_first_again"),
    [
        (typo(location="train.py:9"), True),
        (typo(exception="KeyError: 'accuracy'"), True),
        (typo(exception="ValueError: 'los'"), True),
        (builders.failed(139, stepped=True), True),
        (builders.failed(3, stepped=True), True),
        (builders.disrupted(), False),
        (builders.evicted(), False),
    ],
)
def test_only_another_failure_between_two_equal_ones_makes_the_second_a_first(between, is_first_again):
    run = single()
    for end in (typo(), between):
        assert run.fails(status=end)["phase"] != "Failed"
    assert (run.fails(status=typo())["reason"] == REASON) is not is_first_again
    assert not is_first_again or run.fails(status=typo())["reason"] == REASON


@pytest.mark.parametrize(
    ("restored", "checkpoint", "failed"),
    [(48, 48, True), (64, 64, True), (48, 64, False), (48, 80, False)],
    ids=["older", "of its step, and reported late", "of its step, and saved since", "newer"],
)
def test_a_checkpoint_beyond_the_first_failure_makes_the_second_a_first(restored: int, checkpoint: int, failed: bool):
    """A checkpoint that is not beyond it may be reported only after it: the first failure has seen its step."""
    run = single()
    run.fails(status=typo(), **{"chief-0": {"attempt": 0, "step": 60, "checkpoint": {"step": 32}}})
    report = {"attempt": 1, "step": 81, "restoredStep": restored, "checkpoint": {"step": checkpoint}}
    status = run.fails(status=typo(), **{"chief-0": report})
    assert (status["phase"] == "Failed") is failed


REFUSED = builders.failed(exception="ModelFitError: Model.evaluate cannot be used", stepped=True, permanent=True)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (REFUSED, "training failed, and a restart does not help: ModelFitError"),
        (builders.failed(exception="ModelFitError: no", permanent=True), "training failed, and a restart does not"),
        (typo(trained=True), "the program failed after all its training was done: train.py:8: KeyError"),
    ],
    ids=["a permanent error", "one before the first step", "an exception after all training"],
)
def test_a_failure_that_no_restart_can_help_fails_the_job_at_once(end: dict[str, Any], words: str):
    run = of("MultiWorkerMirrored")
    status = run.fails("worker-0", end)
    assert (status["phase"], status["reason"], status["restarts"]["total"]) == ("Failed", REASON, 0)
    assert status["message"].startswith(words)


@pytest.mark.parametrize(
    "end",
    [typo(trained=True, transient=True), typo(trained=True, exhausted=True), evicted_too(REFUSED)],
    ids=["the machine lacks something", "its memory is used up", "the pod was evicted"],
)
def test_a_restart_may_help_against_what_is_not_the_programs_fault(end: dict[str, Any]):
    assert single().fails(status=end)["phase"] != "Failed"


@pytest.mark.parametrize(
    "stepped",
    [
        {"status": builders.failed(exception=MISSING, stepped=True)},
        {"status": builders.disrupted(), "chief-0": {"attempt": 0, "step": 3, "stepped": True}},
        {"status": builders.disrupted(), "chief-0": {"attempt": 0, "step": 81, "restoredStep": 80}},
    ],
)
def test_a_job_that_ever_stepped_keeps_its_budget_for_what_is_no_exception(stepped: dict[str, Any]):
    run = single()
    since = run.fails(**stepped)["firstStepTime"]
    for _ in range(4):
        run.fails(status=builders.failed(3))
    assert run.status["restarts"]["total"] == 5
    assert run.status["firstStepTime"] == since


@pytest.mark.parametrize("report", [{}, {"step": 0}, {"step": 80, "restoredStep": 80, "stepped": False}, {"step": "x"}])
def test_a_restored_step_does_not_count_as_a_completed_step(report: dict[str, Any]):
    run = single()
    run.fails(**{"chief-0": {"attempt": 0, **report}})
    assert "firstStepTime" not in run.status
    assert run.fails()["reason"] == REASON


def test_failures_before_and_after_a_suspension_are_not_alike():
    """While it is suspended its memory, volumes and nodes may be changed: what it then fails with is the first time."""
    run = single()
    run.fails(status=OOM)
    assert "mistake" in run.status["internal"]["incident"]
    run.suspended_for_a_while()
    assert run.fails(status=OOM)["phase"] != "Failed"
    assert run.status["restarts"]["total"] == 2
    assert run.fails(status=OOM)["reason"] == REASON


def aborted(*log: str) -> dict[str, Any]:
    """The end of a container whose program has aborted after these lines."""
    return builders.ended(134, message="\n".join([*log, builders.last_line(134).splitlines()[-1]]))


CONNECTED = "I0000 00:00:1795711165.21 30265 coordination_service_agent.cc:369] Coordination agent has connected."
OF_A_PEER = "UNAVAILABLE: Error reported from /job:worker/task:1: heartbeat timeout"
CORRUPTED = "free(): invalid pointer"
CHECKED = "F0000 00:00:{}.1 12 tensor.cc:733] Check failed: 1 == NumElements() (1 vs. 0)"


@pytest.mark.parametrize("lines", [(CORRUPTED, CORRUPTED), (CHECKED.format(1795711165), CHECKED.format(1795711298))])
def test_an_abort_of_a_group_with_the_same_last_line_is_the_programs_fault(lines: tuple[str, str]):
    run = of("MultiWorkerMirrored")
    assert run.fails("worker-0", status=aborted(CONNECTED, lines[0]))["phase"] != "Failed"
    assert run.fails("worker-1", status=aborted(CONNECTED, lines[1]))["reason"] == REASON
    assert "SIGABRT (worker-1, exit code 134)" in run.status["message"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([OF_A_PEER, "Aborted"], [OF_A_PEER, "Aborted"]),
        ([CORRUPTED], ["double free or corruption (out)"]),
        ([], []),
        ([CONNECTED], [CONNECTED]),
    ],
    ids=["of a peer", "another line", "no line", "a line that informs"],
)
def test_other_aborts_of_a_group_may_come_from_a_lost_peer(first: list[str], second: list[str]):
    run = of("MultiWorkerMirrored")
    run.fails("worker-0", status=aborted(*first))
    run.fails("worker-0", status=aborted(*second))
    assert run.status["phase"] != "Failed"
    assert run.status["restarts"]["total"] == 2


def test_a_failure_rule_takes_precedence_over_a_permanent_error():
    rule = {"action": "Restart", "onExitCodes": {"operator": "In", "values": [1]}}
    policy = {"maxRestartsWithoutProgress": 3, "backoff": {"initialSeconds": 0, "maxSeconds": 0}, "rules": [rule]}
    run = Run(builders.job("Mirrored", failurePolicy=policy))
    assert run.fails(status=REFUSED)["restarts"]["total"] == 1


def test_an_evaluator_with_a_permanent_error_is_given_up_and_the_job_goes_on():
    run = single(evaluator=True)
    run.fails("evaluator-0", status=REFUSED)
    assert run.status["phase"] != "Failed"
    assert "evaluator" not in run.status["restarts"]
    assert any("a restart does not help, and nothing evaluates what is saved" in event.message for event in run.events)


def test_an_image_of_the_users_own_may_print_what_it_likes():
    run = single(program=False)
    for _ in range(3):
        run.fails()
    assert run.status["restarts"]["total"] == 3


def restored(step: int, attempt: int = 1, incarnation: int = 0) -> dict[str, Any]:
    """The chief says what it went on from, and has done no step since."""
    return {"attempt": attempt, "incarnation": incarnation, "restoredStep": step, "step": step, "stepped": False}


@pytest.mark.parametrize(
    ("told", "report"),
    [({}, {"chief-0": restored(40)}), ({"step": 40}, {})],
    ids=["the next pod restores them", "the last line of the failed pod has them"],
)
def test_steps_that_were_not_observed_count(told: dict[str, Any], report: dict[str, Any]):
    """The operator was away, and the pod that made them is gone."""
    run = single()
    run.fails(status=builders.evicted())
    assert run.fails(status=builders.failed(3, **told), **report)["firstStepTime"]
    for _ in range(2):
        assert run.fails(status=builders.failed(3, **told))["phase"] != "Failed"


def test_a_checkpoint_that_was_there_before_the_job_is_no_step_of_its():
    run = single()
    run.fails(**{"chief-0": restored(40, attempt=0)})
    assert "firstStepTime" not in run.status
    run.fails(**{"chief-0": restored(40)})
    assert "firstStepTime" not in run.status
    assert (run.status["phase"], run.status["reason"]) == ("Failed", REASON)
