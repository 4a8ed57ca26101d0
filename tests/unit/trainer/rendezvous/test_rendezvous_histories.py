# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.rendezvous under any history of polls, losses and blips, as Hypothesis makes them up."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dtjob_trainer.rendezvous.messages import LARGEST, PHASES, Answer, Phase, Registration
from dtjob_trainer.rendezvous.rendezvous import Rendezvous
from tests.unit.fuzzed import fuzzed
from tests.unit.trainer.rendezvous.groups import GROUP, mirrored, registration


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
        self.rendezvous = Rendezvous("uid", "hash", chief="chief-0", group=GROUP)
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

    @rule(
        task=st.sampled_from(GROUP),
        attempt=st.integers(0, LARGEST),
        phase=st.sampled_from(PHASES),
        generation=st.integers(0, LARGEST),
        more=st.fixed_dictionaries(
            {
                "stalled": st.booleans(),
                "stopped": st.booleans(),
                "crash": st.sampled_from(("", "SIGKILL")),
                "step": st.none() | st.integers(),
            }
        ),
    )
    def pod_without_the_name(
        self, task: str, attempt: int, phase: Phase, generation: int, more: dict[str, Any]
    ) -> None:
        """It knows all that is no secret. No go is for it, and none comes of it."""
        said = replace(registration(task, phase, attempt=attempt, generation=generation), supervisor="its", **more)
        before = self.rendezvous.generation
        assert self.rendezvous.register(said, "10.6.6.6", self.now).kind not in ("go", "done")
        self.rendezvous.name_resolved(task, task, ["10.0.0.1"], self.now)
        assert self.rendezvous.generation == before

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
TestRendezvousMachine.settings = settings(fuzzed(150), stateful_step_count=40)
