# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.stalls: who is behind, of all that supervisors tell."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dtjob_trainer.rendezvous.messages import Phase, Registration
from dtjob_trainer.rendezvous.rendezvous import Rendezvous
from dtjob_trainer.rendezvous.stalls import (
    AFTERMATH_SECONDS,
    PATIENCE_SECONDS,
    SETTLE_SECONDS,
    SILENT_SECONDS,
    Heard,
    Named,
    Stalls,
    is_stalled,
    straggler,
)
from tests.unit.trainer.rendezvous import groups


def task(name: str, step: int | None = 40, phase: Phase = "running", *, silent: bool = False, **more: Any) -> Heard:
    """What is known of one task; of those that run, that they have stalled."""
    more = {"stalled": phase == "running", **more}
    return Heard(name, replace(groups.registration(name, phase), step=step, **more), silent)


def server(name: str, **more: Any) -> Heard:
    return task(name, None, "serving", **more)


def group(**worker: Any) -> list[Heard]:
    """Three tasks, of which worker-0 is so."""
    return [
        task("chief-0", doing="step"),
        task("worker-0", **{"doing": "step", **worker}),
        task("worker-1", doing="step"),
    ]


def servers(*others: Heard, **chief: Any) -> list[Heard]:
    """A ParameterServer job whose chief has stalled; `others` instead of those that are well."""
    told = {each.task: each for each in others}
    return [
        task("chief-0", **{"doing": "step", **chief}),
        *(told.get(name, server(name)) for name in ("worker-0", "worker-1", "ps-0")),
    ]


@pytest.mark.parametrize(
    ("heard", "behind", "how"),
    [
        (group(stopped=True), "worker-0", "its process is stopped (SIGSTOP)"),
        (group(step=38), "worker-0", "at step 38, others at 40, in a step"),
        (group(step=38, doing="data"), "worker-0", "at step 38, others at 40, in its data function"),
        (group(step=38, doing="what a later release says"), "worker-0", "at step 38, others at 40"),
        (group(doing="data"), "worker-0", "in its data function"),
        (group(doing="callbacks"), "worker-0", "in a callback"),
        (group(doing="", stalled=False), "worker-0", "elsewhere than the others"),
        (group(), "chief-0", "no task is behind the others"),
        (servers(server("worker-1", stopped=True)), "worker-1", "its process is stopped (SIGSTOP)"),
        (servers(server("ps-0", stopped=True)), "ps-0", "its process is stopped (SIGSTOP)"),
        (servers(doing="data"), "chief-0", "in its data function"),
        (servers(doing="callbacks"), "chief-0", "in a callback"),
        (servers(), "chief-0", "no task is behind the others"),
        ([task("chief-0", doing="callbacks"), task("worker-0", doing="step")], "chief-0", "in a callback"),
    ],
)
def test_the_straggler_is_the_task_that_the_others_wait_for(heard: Sequence[Heard], behind: str, how: str) -> None:
    named = straggler(heard)
    assert (named.task, named.how) == (behind, how)
    assert named.told == next(each.registration.process for each in heard if each.task == behind and each.registration)


def test_the_one_that_has_skipped_a_collective_in_a_callback_is_behind() -> None:
    heard = [task("chief-0", doing="callbacks"), task("worker-0", doing="callbacks"), task("worker-1", doing="step")]
    assert straggler(heard).task == "worker-1"


def test_a_silent_worker_is_named_and_the_chief_ends_over_it() -> None:
    """Nobody can tell it to end."""
    heard = servers(server("worker-1", silent=True))
    named = straggler(heard)
    assert (named.task, named.how) == ("worker-1", "its supervisor is silent")
    assert heard[0].registration is not None
    assert named.told == heard[0].registration.process


def test_a_chief_without_any_worker_waits_for_pods() -> None:
    away = [server("worker-0", silent=True), Heard("worker-1", None, silent=True)]
    assert not is_stalled(servers(*away))
    assert is_stalled(servers(away[0]))
    assert is_stalled(servers())


def test_nothing_is_a_stall_unless_a_task_says_so() -> None:
    assert not is_stalled([task("chief-0", stalled=False), task("worker-0", silent=True)])
    assert not is_stalled([task("chief-0", stalled=False), task("worker-0", 3, stalled=False)])


class Group:
    """A group whose supervisors report to the chief's, which looks for a stall at each report."""

    def __init__(self, rendezvous: Rendezvous | None = None) -> None:
        self.rendezvous, self.stalls = rendezvous or groups.mirrored(), Stalls()
        self.told: dict[str, Registration] = {}

    def says(self, name: str, now: float, step: int | None = 40, phase: Phase = "running", **more: Any) -> Named | None:
        """What a task's supervisor says at `now`; whom its answer names."""
        more = {"stalled": phase == "running", **more}
        said = self.told[name] = replace(groups.registration(name, phase), step=step, **more)
        self.rendezvous.register(said, None, now)
        self.stalls.look(said, lambda: self.rendezvous.heard(now), now)
        return self.stalls.named(said)

    def names(self) -> Named | None:
        """Whom it names, of all that was said."""
        found = [named for said in self.told.values() if (named := self.stalls.named(said)) is not None]
        assert len(found) <= 1
        return found[0] if found else None


def test_a_task_with_an_old_report_of_a_step_is_not_the_straggler() -> None:
    """On a machine that is busy worker-0's supervisor speaks seldom: of step 40, which the others wait after, nobody
    has heard of it yet."""
    group = Group()
    group.says("worker-0", 9.0, 39, stalled=False)
    group.says("worker-1", 10, doing="data")
    for now in (10.2, 11.2, 12.2, 13.3):
        group.says("chief-0", now, doing="step")
    assert group.names() is None
    group.says("worker-0", 13.6, doing="step", stalled=False)
    group.says("chief-0", 14.3, doing="step")
    assert group.names() is None, "its own clock has not run out: it may step on yet"
    group.says("worker-0", 15.4, doing="step")
    assert group.says("worker-1", 15.5, doing="data") is not None or group.says("worker-1", 16.5, doing="data")
    named = group.names()
    assert named is not None
    assert (named.task, named.how) == ("worker-1", "in its data function")


def test_a_supervisor_is_silent_only_after_some_seconds() -> None:
    """As a supervisor on a machine that is busy: nobody ends its container over that."""
    group = Group()
    for name in ("worker-0", "worker-1"):
        group.says(name, 0, doing="step", stalled=False)
    for now in range(1, int(SILENT_SECONDS) + 1):
        group.says("chief-0", now, doing="step")
        assert group.names() is None
    group.says("worker-0", SILENT_SECONDS, doing="step")
    group.says("chief-0", SILENT_SECONDS + 1, doing="step")
    named = group.names()
    assert named is not None
    assert (named.task, named.how) == ("worker-1", "its supervisor is silent")


def test_a_late_report_of_a_training_task_is_no_stall() -> None:
    """The others step on, which they could not do without it."""
    group = Group()
    for now in range(60):
        group.says("worker-0", now, 10, stalled=now > 10)
        group.says("worker-1", now, 10 + now, stalled=False)
        group.says("chief-0", now, 10 + now, stalled=False)
    assert group.names() is None


def test_a_task_that_never_reports_a_stall_is_named_after_a_limit() -> None:
    group = Group()
    for now in range(int(PATIENCE_SECONDS) + 3):
        group.says("chief-0", now, doing="step")
        group.says("worker-0", now, stalled=False)
        group.says("worker-1", now, doing="step")
        if now < PATIENCE_SECONDS:
            assert group.names() is None
    named = group.names()
    assert named is not None
    assert (named.task, named.how) == ("worker-0", "elsewhere than the others")


def test_the_straggler_is_named_once_all_tasks_have_reported() -> None:
    group = Group()
    stalls = group.stalls
    first = replace(groups.registration("chief-0", "running"), step=40)
    assert not stalls.look(first, lambda: pytest.fail("nobody stalls"), 0)
    group.says("chief-0", 100)
    assert not stalls.look(first, lambda: pytest.fail("asked within a second"), 100.5)
    group.says("worker-0", 101, doing="data")
    group.says("worker-1", 102, doing="step")
    assert group.names() is None
    group.says("chief-0", 100 + SETTLE_SECONDS)
    named = group.names()
    assert named is not None
    assert named.task == "worker-0"
    assert stalls.named(group.told["worker-1"]) is None
    behind = group.told["worker-0"]
    assert stalls.named(replace(behind, incarnation=behind.incarnation + 1)) is None, "its next process is another"


def heard_at(now: float, heard: Sequence[Heard]) -> list[Heard]:
    return [replace(each, heard_at=now) for each in heard]


def test_tasks_that_are_heard_after_a_stall_get_time_to_recover() -> None:
    """The others lose the straggler only after it has ended."""
    stalls, heard = Stalls(), group(doing="data")
    first = heard[0].registration
    assert first is not None
    stalls.look(first, lambda: heard_at(0, heard), 0)
    assert stalls.look(first, lambda: heard_at(SETTLE_SECONDS, heard), SETTLE_SECONDS)
    end = SETTLE_SECONDS + AFTERMATH_SECONDS
    assert not stalls.look(first, lambda: pytest.fail("too early"), end - 0.1)
    stalls.look(first, lambda: heard_at(end, heard), end)
    end += SETTLE_SECONDS
    assert stalls.look(first, lambda: heard_at(end, heard), end)


def test_a_stall_that_passes_by_itself_names_no_task() -> None:
    stalls, heard = Stalls(), heard_at(100, group(doing="data"))
    first = heard[0].registration
    assert first is not None
    stalls.look(first, lambda: heard, 0)
    well = [
        replace(each, registration=replace(each.registration, stalled=False)) for each in heard if each.registration
    ]
    assert not stalls.look(first, lambda: well, SETTLE_SECONDS)
    assert not stalls.look(first, lambda: heard, SETTLE_SECONDS + 1), "it begins anew"


def test_the_rendezvous_knows_when_each_task_was_heard_and_which_are_silent() -> None:
    rendezvous: Rendezvous = groups.mirrored()
    rendezvous.register(groups.registration("chief-0"), None, 0)
    rendezvous.register(groups.registration("worker-0"), None, rendezvous.lease)
    heard = rendezvous.heard(SILENT_SECONDS + 0.1)
    assert [(each.task, each.silent) for each in heard] == [("chief-0", True), ("worker-0", False), ("worker-1", True)]
    assert [each.heard_at for each in heard[:2]] == [0, rendezvous.lease]
    assert heard[2].registration is None
    assert not rendezvous.heard(SILENT_SECONDS)[0].silent


def test_a_task_of_a_large_job_is_silent_only_after_its_lease() -> None:
    tasks = ("chief-0", *(f"worker-{index}" for index in range(3999)))
    rendezvous = Rendezvous("uid", "hash", chief="chief-0", group=tasks)
    rendezvous.register(groups.registration("worker-7"), None, 0)
    assert rendezvous.lease > SILENT_SECONDS
    assert not rendezvous.heard(rendezvous.lease)[8].silent
    assert rendezvous.heard(rendezvous.lease + 0.1)[8].silent


def test_only_tasks_that_were_heard_before_are_silent() -> None:
    rendezvous: Rendezvous = groups.mirrored()
    rendezvous.register(groups.registration("chief-0"), None, 9)
    rendezvous.register(groups.registration("worker-0", attempt=2), None, 0)
    assert rendezvous.silent(10, 9.9) == {}
    assert rendezvous.silent(10, 10) == {"worker-0": 2}
