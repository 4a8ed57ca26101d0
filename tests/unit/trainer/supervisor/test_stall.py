# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.stall: what is counted as time without a step."""

import asyncio

import pytest

from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor.stall import Stall, StallGuard

LIMIT = 10.0


def guard_of(role: str = "chief", index: int = 0, limit: float | None = LIMIT) -> StallGuard:
    return StallGuard(Task("digits", "default", "uid", role, index, stall_seconds=limit), lambda *_: None)


def training(*reports: dict[str, object], limit: float | None = LIMIT) -> StallGuard:
    """A process that went on from step 20, has done one step since, and has then told of these."""
    watch = guard_of(limit=limit)
    for report in ({"step": 20, "restoredStep": 20}, {"state": "training", "step": 20}, {"step": 21}, *reports):
        watch.heard(report)
    return watch


def is_over_after(watch: StallGuard, seconds: float) -> bool:
    watch.passes(seconds)
    return watch.over


def test_a_step_that_takes_just_less_is_no_stall() -> None:
    watch = training()
    for step in range(22, 30):
        assert not is_over_after(watch, LIMIT - 0.1)
        watch.heard({"step": step})
    assert is_over_after(watch, LIMIT)


@pytest.mark.parametrize("doing", ["data", "callbacks", "step", "something else"])
def test_a_standstill_between_two_steps_is_a_stall(doing: str) -> None:
    assert is_over_after(training({"doing": doing}), LIMIT)


@pytest.mark.parametrize(
    "report", [{"doing": "validating"}, {"doing": "saving"}, {"state": "saving"}, {"state": "finished"}]
)
def test_validation_saving_and_the_end_are_no_stall(report: dict[str, object]) -> None:
    watch = training()
    watch.passes(LIMIT - 1)
    watch.heard(report)
    assert not is_over_after(watch, 1000 * LIMIT)
    watch.heard({"state": "training", "doing": "step"})
    assert not is_over_after(watch, LIMIT - 1), "it begins anew"
    assert is_over_after(watch, 1)


@pytest.mark.parametrize(
    "reports",
    [
        [],
        [{"state": "waiting"}],
        [{"state": "starting", "totalSteps": 40}],
        [{"state": "starting", "step": 20, "restoredStep": 20}],
        [{"step": 20, "restoredStep": 20}, {"state": "training", "step": 20}],
        [{"restoredStep": 0}, {"state": "training", "step": 0}, {"doing": "data"}],
        [{"state": "serving"}],
        [{"state": "evaluating"}],
        [{"trainsItself": True}],
    ],
)
def test_a_process_has_not_stalled_before_its_first_step(reports: list[dict[str, object]]) -> None:
    """It waits, restores, compiles, or reads its first batch; or it trains nothing."""
    watch = guard_of()
    for report in reports:
        watch.heard(report)
    assert not is_over_after(watch, 1000 * LIMIT)


@pytest.mark.parametrize("report", [{"doing": "validating"}, {"state": "serving"}, {"state": "starting"}])
def test_a_stopped_process_stalls_whatever_it_has_reported(report: dict[str, object]) -> None:
    watch = training(report)
    watch.passes(LIMIT - 1, stopped=True)
    assert not is_over_after(watch, 1), "it goes on"
    watch.passes(LIMIT - 1, stopped=True)
    assert not watch.over
    watch.passes(1, stopped=True)
    assert watch.over


def test_a_report_without_a_new_step_does_not_end_a_stall() -> None:
    watch = training()
    watch.passes(LIMIT - 1)
    watch.heard({"step": 21, "loss": 0.1, "doing": "data"})
    assert is_over_after(watch, 1)


def test_a_new_process_resets_the_stall() -> None:
    watch = training()
    watch.passes(LIMIT)
    watch.process_changed(7)
    assert not is_over_after(watch, 1000 * LIMIT)


def test_without_a_limit_nothing_is_a_stall() -> None:
    assert not is_over_after(training(limit=None), 1e9)


def test_a_stall_has_its_reason_and_its_facts() -> None:
    stall = Stall("worker-1", "in its data function", 600.0)
    assert stall.reason == "stalled: no new step for 600 s; worker-1 is behind: in its data function"
    assert stall.facts == {"straggler": "worker-1", "behind": "in its data function"}


def test_silent_tasks_are_named_after_the_group_has_waited_for_the_limit() -> None:
    task = Task("digits", "default", "uid", "chief", 0, stall_seconds=LIMIT)
    guard = StallGuard(task, lambda *_: None, lambda seconds: {"worker-1": 2} if seconds == LIMIT else {})
    guard.passes(LIMIT - 1)
    assert guard.silent == {}
    guard.passes(1)
    assert guard.silent == {"worker-1": 2}
    guard.heard({"state": "starting"})
    guard.passes(1)
    assert guard.silent == {}


@pytest.mark.parametrize("cluster", [{"chief": ("c:1",), "worker": ("a:1", "b:1")}, {"worker": ("a:1", "b:1")}])
def test_a_waiting_worker_reports_a_chief_that_does_not_answer(cluster: dict[str, tuple[str, ...]]) -> None:
    task = Task(
        "digits", "default", "uid", "worker", 1, strategy="MultiWorkerMirrored", cluster=cluster, stall_seconds=LIMIT
    )
    guard = StallGuard(task, lambda *_: None)
    guard.passes(100)
    assert guard.silent == {}, "it was never heard: the pod may be away"
    guard.answered(3)
    guard.passes(LIMIT - 1)
    assert guard.silent == {}
    guard.passes(1)
    assert guard.silent == {"chief-0" if "chief" in cluster else "worker-0": 3}
    guard.heard({"state": "training"})
    guard.passes(1)
    assert guard.silent == {}, "there may be steps"


def test_time_in_which_the_supervisor_was_stopped_itself_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine was suspended, or all processes were stopped: a look comes much later than it should."""
    now, sleeps = 0.0, 0
    told: list[str] = []

    async def sleep(seconds: float) -> None:
        nonlocal now, sleeps
        sleeps += 1
        now += 1e6 if sleeps <= 2 else seconds
        if told:
            raise asyncio.CancelledError

    monkeypatch.setattr("dtjob_trainer.supervisor.stall.time.monotonic", lambda: now)
    monkeypatch.setattr("dtjob_trainer.supervisor.stall.asyncio.sleep", sleep)

    async def watch() -> None:
        guard = StallGuard(
            Task("digits", "default", "uid", "chief", 0, stall_seconds=LIMIT),
            lambda straggler, how: told.append(f"{straggler} {how}"),
        )
        for report in ({"state": "training", "step": 0}, {"step": 1}):
            guard.heard(report)
        with pytest.raises(asyncio.CancelledError):
            await guard.watch()

    asyncio.run(watch())
    assert told == ["chief-0 in a step"]
    assert sleeps == 2 + 6 + 1, "two seconds for each of the long ones, then six more"
