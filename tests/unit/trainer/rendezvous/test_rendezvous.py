"""The rendezvous: who may start together, told by a clock that the test turns."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dtjob_trainer.rendezvous.host import RendezvousHost, host_of, name_problem, same_address
from dtjob_trainer.rendezvous.messages import Answer, Phase, Registration
from dtjob_trainer.rendezvous.rendezvous import Rendezvous, hold_seconds, name_some

GROUP = ("chief-0", "worker-0", "worker-1")


def registration(
    task: str, phase: Phase = "waiting", *, attempt: int = 0, incarnation: int = 0, generation: int = 0
) -> Registration:
    return Registration("uid", "hash", task, attempt, f"{task}/{attempt}", incarnation, phase, generation)


def mirrored() -> Rendezvous:
    return Rendezvous("uid", "hash", chief="chief-0", supervisor="s", group=GROUP)


def parameter_server() -> Rendezvous:
    return Rendezvous(
        "uid", "hash", chief="chief-0", supervisor="s", group=["chief-0"], servers=["worker-0", "ps-0", "ps-1"]
    )


def all_wait(rendezvous: Rendezvous, now: float = 0, incarnation: int = 0) -> list[Answer]:
    """Everybody registers in turn; then what each of them is answered."""
    registrations = [registration(task, incarnation=incarnation) for task in GROUP]
    for each in registrations:
        rendezvous.register(each, None, now)
    return [rendezvous.answer(each, now) for each in registrations]


def test_all_go_when_the_last_has_come() -> None:
    rendezvous = mirrored()
    assert rendezvous.register(registration("worker-1"), None, 0).kind == "wait"
    answer = rendezvous.register(registration("chief-0"), None, 0)
    assert (answer.kind, answer.message) == ("wait", "waiting for worker-0")
    before = rendezvous.revision
    assert rendezvous.register(registration("worker-0"), None, 1).kind == "go"
    assert rendezvous.revision > before, "held answers must be released"
    assert rendezvous.answer(registration("worker-1"), 1) == rendezvous.answer(registration("chief-0"), 1)


def test_who_missed_its_go_gets_it_again() -> None:
    rendezvous = mirrored()
    answers = all_wait(rendezvous)
    assert rendezvous.register(registration("worker-1"), None, 90) == answers[2]


def test_a_registration_that_is_not_renewed_does_not_count() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("worker-0"), None, 0)
    rendezvous.register(registration("worker-1"), None, 5)
    answer = rendezvous.register(registration("chief-0"), None, 6)
    assert (answer.kind, answer.message) == ("wait", "waiting for worker-0")


def test_a_waiting_task_whose_connection_broke_does_not_count() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("worker-0"), None, 0)
    rendezvous.register(registration("worker-1"), None, 0)
    rendezvous.disconnected(registration("worker-0"))
    assert rendezvous.register(registration("chief-0"), None, 0).kind == "wait"


def test_a_broken_connection_of_before_changes_nothing() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("worker-0"), None, 0)
    rendezvous.register(registration("worker-0", incarnation=1), None, 0)
    rendezvous.disconnected(registration("worker-0"))
    rendezvous.register(registration("worker-1"), None, 0)
    assert rendezvous.register(registration("chief-0"), None, 0).kind == "go"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"uid": "other"}, "uid other; this is the rendezvous of the job with uid uid"),
        ({"cluster_hash": "old"}, "cluster hash old; the chief task (chief-0) has hash"),
        ({"task": "worker-7"}, "worker-7 is not in the cluster"),
    ],
)
def test_a_stranger_is_refused_with_the_difference(change: dict[str, str], words: str) -> None:
    rendezvous = mirrored()
    answer = rendezvous.register(replace(registration("worker-1"), **change), None, 0)  # type: ignore[arg-type]
    assert answer.kind == "refused"
    assert words in answer.message
    assert "worker-1" in rendezvous.missing(0)


def test_a_replaced_attempt_is_refused() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("worker-1", attempt=1), None, 0)
    answer = rendezvous.register(registration("worker-1", attempt=0), None, 0)
    assert (answer.kind, answer.message) == ("refused", "attempt 0 of worker-1 was replaced by attempt 1")


def test_a_member_that_comes_back_ends_the_generation() -> None:
    rendezvous = mirrored()
    all_wait(rendezvous)
    running = [registration(task, "running", generation=1) for task in GROUP]
    assert [rendezvous.register(each, None, 1).kind for each in running] == ["continue"] * 3
    rendezvous.register(registration("worker-1", attempt=1), None, 2)
    answers = [rendezvous.register(each, None, 2) for each in running[:2]]
    assert [(answer.kind, answer.message) for answer in answers] == [("restart", "worker-1 was lost")] * 2


def test_the_next_go_says_who_was_replaced() -> None:
    rendezvous = mirrored()
    all_wait(rendezvous)
    for task in GROUP[:2]:
        assert rendezvous.register(registration(task, incarnation=1, generation=1), None, 1).kind == "wait"
    answer = rendezvous.register(registration("worker-1", attempt=1), None, 1)
    assert (answer.kind, answer.generation) == ("go", 2)
    assert (answer.changed, answer.message) == (("worker-1",), "worker-1 was lost")


def test_a_blip_replaces_nobody() -> None:
    rendezvous = mirrored()
    all_wait(rendezvous)
    answer = all_wait(rendezvous, incarnation=1)[0]
    assert (answer.kind, answer.generation, answer.changed) == ("go", 2, ())


def test_preemption_is_told_to_the_others_and_named_as_the_cause() -> None:
    rendezvous = mirrored()
    all_wait(rendezvous)
    running = [registration(task, "running", generation=1) for task in GROUP]
    before = rendezvous.revision
    leaving = rendezvous.register(replace(running[2], phase="preempted"), None, 1)
    assert (leaving.kind, leaving.preempted) == ("continue", ())
    assert rendezvous.revision > before
    assert rendezvous.answer(running[1], 1).preempted == ("worker-1",)
    for task in GROUP[:2]:
        rendezvous.register(registration(task, incarnation=1, generation=1), None, 2)
    answer = rendezvous.register(registration("worker-1", attempt=1), None, 3)
    assert (answer.kind, answer.message, answer.changed) == ("go", "worker-1 was preempted", ("worker-1",))


def test_a_new_chief_asks_those_who_still_run_to_start_again() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("chief-0", attempt=1), None, 0)
    answer = rendezvous.register(registration("worker-0", "running", generation=7), None, 0)
    assert (answer.kind, answer.message) == ("restart", "chief-0 was lost")
    rendezvous.register(registration("worker-0", incarnation=1, generation=7), None, 0)
    answer = rendezvous.register(registration("worker-1", incarnation=1, generation=7), None, 0)
    assert (answer.kind, answer.generation) == ("go", 8), "generations go on where the old chief stopped"


def test_done_is_told_to_all() -> None:
    rendezvous = mirrored()
    all_wait(rendezvous)
    rendezvous.finish()
    assert rendezvous.register(registration("worker-0", "running", generation=1), None, 0).kind == "done"
    assert not rendezvous.all_know()
    assert rendezvous.register(registration("worker-1", attempt=1), None, 0).kind == "done"
    assert rendezvous.all_know()


def test_a_name_must_resolve_to_where_the_task_registered_from() -> None:
    rendezvous = mirrored()
    rendezvous.register(registration("worker-0"), "10.0.0.1", 0)
    rendezvous.register(registration("worker-1"), "10.0.0.2", 0)
    rendezvous.register(registration("chief-0"), None, 0)
    assert rendezvous.address_to_check("chief-0") is None
    assert rendezvous.address_to_check("worker-1") == "10.0.0.2"
    rendezvous.name_checked("worker-0", "10.0.0.1", None, 0)
    rendezvous.name_checked("worker-1", "10.0.0.2", "its name w resolves to 10.0.0.9", 0)
    answer = rendezvous.answer(registration("chief-0"), 0)
    assert answer.message == "waiting for worker-1 (its name w resolves to 10.0.0.9)"
    rendezvous.name_checked("worker-1", "10.0.0.2", None, 0)
    assert rendezvous.answer(registration("chief-0"), 0).kind == "go"


def test_a_replaced_task_is_looked_up_anew_and_others_are_not() -> None:
    rendezvous = mirrored()
    for task, address in (("worker-0", "10.0.0.1"), ("worker-1", "10.0.0.2")):
        rendezvous.register(registration(task), address, 0)
        rendezvous.name_checked(task, address, None, 0)
    rendezvous.register(registration("worker-0", incarnation=1), "10.0.0.1", 1)
    rendezvous.register(registration("worker-1", attempt=1), "10.0.0.3", 1)
    assert rendezvous.address_to_check("worker-0") is None
    assert rendezvous.address_to_check("worker-1") == "10.0.0.3"
    assert rendezvous.missing(1) == ["chief-0", "worker-1 (looking up its name)"]


def test_a_parameter_server_chief_goes_when_all_others_serve() -> None:
    rendezvous = parameter_server()
    for task in ("worker-0", "ps-0"):
        assert rendezvous.register(registration(task, "serving"), None, 0).kind == "continue"
    chief = registration("chief-0")
    rendezvous.register(chief, None, 0)
    rendezvous.register(registration("ps-1", "running"), None, 0)
    for task in ("worker-0", "ps-0"):
        rendezvous.register(registration(task, "serving"), None, 0)
    assert rendezvous.answer(chief, 0).message == "waiting for ps-1 (not serving yet)"
    rendezvous.register(registration("ps-1", "serving"), None, 0)
    assert rendezvous.answer(chief, 0).kind == "go"


def test_a_parameter_server_chief_waits_for_the_new_ps_and_not_for_the_dead_one() -> None:
    rendezvous = parameter_server()
    servers = [registration(task, "serving") for task in ("worker-0", "ps-0", "ps-1")]
    rendezvous.register(registration("chief-0"), None, 0)
    for each in servers:
        rendezvous.register(each, None, 0)
    before = rendezvous.revision
    again = registration("chief-0", incarnation=1, generation=1)
    assert rendezvous.register(again, None, 0.1).kind == "wait"
    assert rendezvous.revision > before, "servers must be asked to speak at once"
    for each in servers[:2]:
        rendezvous.register(each, None, 0.2)
    assert rendezvous.answer(again, 0.2).message == "waiting for ps-1"
    rendezvous.register(registration("ps-1", "serving", attempt=1), None, 3)
    for each in servers[:2]:
        rendezvous.register(each, None, 3)
    answer = rendezvous.answer(again, 3)
    assert (answer.kind, answer.changed, answer.message) == ("go", ("ps-1",), "ps-1 was lost")


def test_a_dead_parameter_server_worker_disturbs_nobody() -> None:
    rendezvous = parameter_server()
    rendezvous.register(registration("chief-0"), None, 0)
    for task in ("worker-0", "ps-0", "ps-1"):
        rendezvous.register(registration(task, "serving"), None, 0)
    rendezvous.register(registration("worker-0", "preempted"), None, 1)
    rendezvous.register(registration("worker-0", "running", attempt=1), None, 1)
    answer = rendezvous.register(registration("chief-0", "running", generation=1), None, 1)
    assert (answer.kind, answer.preempted) == ("continue", ())


def test_registrations_and_answers_survive_json() -> None:
    each = replace(registration("worker-1", "running", attempt=2, generation=3), step=17)
    assert Registration.from_json(each.to_json()) == each
    answer = Answer("go", 3, "worker-1 was lost", ("worker-1",), (), "s")
    assert Answer.from_json(answer.to_json()) == answer


@pytest.mark.parametrize(
    ("change", "words"),
    [({"attempt": "1"}, "attempt must be of type int"), ({"phase": "asleep"}, "phase must be"), ({"uid": None}, "uid")],
)
def test_a_malformed_registration_is_named(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Registration.from_json(registration("worker-1").to_json() | change)


def test_addresses_and_names() -> None:
    assert host_of("[fd00::1]:2222") == "fd00::1"
    assert host_of("digits-worker-0.digits:2222") == "digits-worker-0.digits"
    assert same_address("::ffff:10.0.0.1", "10.0.0.1")
    assert same_address("fe80::1%eth0", "fe80:0::1")
    assert name_problem("w", ["10.0.0.2", "10.0.0.1"], "::ffff:10.0.0.1") is None
    assert name_problem("w", ["10.0.0.2"], "10.0.0.1") == (
        "its name w resolves to 10.0.0.2, but it registered from 10.0.0.1"
    )
    assert name_some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert hold_seconds(3) == 1
    assert hold_seconds(1000) == 5


@dataclass
class Supervised:
    """A task as the model sees it: one supervisor, one training process."""

    attempt: int = 0
    alive: bool = True
    incarnation: int = 0
    running: bool = False
    generation: int = 0


class RendezvousMachine(RuleBasedStateMachine):
    """Any history of polls, lost answers, deaths and blips of three tasks, the chief's supervisor included."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.tasks = {task: Supervised() for task in GROUP}
        self.rendezvous = mirrored()
        self.seen: dict[str, tuple[Registration, float]] = {}  # what the present chief was told last, and when
        self.gos: dict[tuple[int, int, str], tuple[tuple[int, str, int], Answer]] = {}  # (chief, generation, task)
        self.sent: list[Registration] = []

    @initialize()
    def begin(self) -> None:
        self.new_chief()

    def new_chief(self) -> None:
        attempt = self.tasks["chief-0"].attempt
        self.rendezvous = Rendezvous("uid", "hash", chief="chief-0", supervisor=f"c/{attempt}", group=GROUP)
        self.seen = {}

    def describe(self, task: str) -> Registration:
        each = self.tasks[task]
        phase: Phase = "running" if each.running else "waiting"
        return registration(task, phase, attempt=each.attempt, incarnation=each.incarnation, generation=each.generation)

    def restart(self, task: str) -> None:
        each = self.tasks[task]
        each.incarnation += 1
        each.running = False

    def ask(self, task: str, *, lost: bool = False) -> str | None:
        """One poll; `lost`: the answer does not arrive."""
        each = self.tasks[task]
        if not each.alive or not self.tasks["chief-0"].alive:
            return None
        said = self.describe(task)
        self.sent.append(said)
        opened = self.rendezvous.generation
        answer = self.rendezvous.register(said, None, self.now)
        self.seen[task] = (said, self.now)
        if answer.kind == "go":
            self.check_go(task, said, answer, opened)
        if not lost:
            if answer.kind == "go":
                assert not each.running
                assert answer.generation > each.generation, "no process is let go twice, generations only grow"
                each.running, each.generation = True, answer.generation
            elif answer.kind == "restart":
                self.restart(task)
        return answer.kind

    def check_go(self, task: str, said: Registration, answer: Answer, opened: int) -> None:
        key = (self.tasks["chief-0"].attempt, answer.generation, task)
        assert self.gos.setdefault(key, (said.process, answer)) == (said.process, answer)
        if answer.generation > opened:  # this very registration opened it: everybody must have been waiting
            for other in GROUP:
                known, at = self.seen[other]
                assert known.phase == "waiting"
                assert self.now - at <= self.rendezvous.lease
                present = self.tasks[other]
                if present.alive and self.describe(other).process == known.process:
                    assert not present.running, "one that was let go already does not wait"

    @rule(task=st.sampled_from(GROUP), lost=st.booleans())
    def poll(self, task: str, lost: bool) -> None:
        self.ask(task, lost=lost)

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0, 6.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(task=st.sampled_from(GROUP))
    def lose_peers(self, task: str) -> None:
        if self.tasks[task].alive and self.tasks[task].running:
            self.restart(task)

    @rule(task=st.sampled_from(GROUP))
    def kill(self, task: str) -> None:
        self.tasks[task].alive = False

    @rule(task=st.sampled_from(GROUP))
    def replace(self, task: str) -> None:
        if not self.tasks[task].alive:
            self.tasks[task] = Supervised(attempt=self.tasks[task].attempt + 1)
            if task == "chief-0":
                self.new_chief()

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def old_message_arrives_late(self, data: st.DataObject) -> None:
        """A registration from an old process must change nothing for the present one."""
        old = data.draw(st.sampled_from(self.sent))
        current = self.seen.get(old.task)
        if self.tasks["chief-0"].alive and current and old.process < current[0].process:
            assert self.rendezvous.register(old, None, self.now).kind == "refused"

    @rule(task=st.sampled_from(GROUP))
    def connection_breaks(self, task: str) -> None:
        if task in self.seen:
            self.rendezvous.disconnected(self.seen[task][0])
            if self.seen[task][0].phase == "waiting":
                self.seen[task] = (self.seen[task][0], -1e9)

    @rule(change=st.sampled_from([{"uid": "x"}, {"cluster_hash": "x"}, {"task": "worker-9"}]))
    def stranger(self, change: dict[str, str]) -> None:
        stray = replace(registration("worker-0"), **change)  # type: ignore[arg-type]
        assert self.rendezvous.register(stray, None, self.now).kind == "refused"

    @invariant()
    def one_process_of_each_task_in_a_generation(self) -> None:
        assert len({(key, value[0]) for key, value in self.gos.items()}) == len(self.gos)

    def teardown(self) -> None:
        """Once failures stop, everybody trains in one generation, soon."""
        for task in ("chief-0", *GROUP):
            self.replace(task)
        for _ in range(6):
            self.now += 1
            kinds = [self.ask(task) for task in GROUP]
        assert kinds == ["continue"] * 3, self.tasks
        assert len({each.generation for each in self.tasks.values()}) == 1


TestRendezvousMachine = RendezvousMachine.TestCase
TestRendezvousMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


async def test_a_preempted_task_is_answered_when_there_is_news() -> None:
    """Else its supervisor would ask without a pause, just while its training process saves."""
    rendezvous = mirrored()
    all_wait(rendezvous)
    host = RendezvousHost(rendezvous, {})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(host.answer(registration("worker-0", phase="preempted", generation=1), None), 0.05)
