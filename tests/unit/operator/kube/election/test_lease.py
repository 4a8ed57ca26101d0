# SPDX-License-Identifier: Apache-2.0
"""Never two leaders, whatever the network loses and however far apart clocks are set; and never none for long."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dtjob.kube.election.lease import Candidate, Election
from tests.unit.operator.simulation.api import copied

WALL = datetime(2026, 11, 21, 10, tzinfo=UTC)
SECONDS = 15
NAMES = ("a", "b", "c")


def candidate(name: str = "a", seconds: int = SECONDS) -> Candidate:
    return Candidate(Election("system", "dtjob", seconds, name))


def lead(who: Candidate, lease: dict[str, Any] | None, now: float) -> dict[str, Any]:
    wish = who.wish(lease, now, WALL)
    assert wish is not None
    who.wrote(now)
    return wish


def test_the_first_candidate_takes_the_lease():
    first = candidate()
    lease = lead(first, None, 100.0)
    assert first.leads(109.9)
    assert not first.leads(110.0)
    assert lease["metadata"] == {"name": "dtjob", "namespace": "system"}
    assert lease["spec"] == {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-11-21T10:00:00.000000Z",
        "renewTime": "2026-11-21T10:00:00.000000Z",
        "leaseTransitions": 0,
    }


def test_a_standby_waits_for_the_whole_duration_on_its_own_clock():
    lease = lead(candidate("a"), None, 100.0)
    standby = candidate("b")
    assert standby.wish(lease, 5000.0, WALL) is None
    assert standby.wish(lease, 5014.9, WALL) is None
    taken = standby.wish(lease, 5015.0, WALL)
    assert taken["spec"]["holderIdentity"] == "b"
    assert taken["spec"]["leaseTransitions"] == 1


def test_the_holder_says_how_long_it_holds():
    lease = lead(candidate("a", seconds=60), None, 0.0)
    standby = candidate("b", seconds=5)
    assert standby.wish(lease, 0.0, WALL) is None
    assert standby.wish(lease, 59.9, WALL) is None
    assert standby.wish(lease, 60.0, WALL)["spec"]["leaseDurationSeconds"] == 5


def test_a_lease_made_by_hand_without_a_spec_is_taken():
    bare = {"metadata": {"name": "dtjob", "namespace": "system", "resourceVersion": "7"}}
    wish = candidate().wish(bare, 0.0, WALL)
    assert wish["metadata"]["resourceVersion"] == "7"
    assert wish["spec"]["leaseTransitions"] == 0


@dataclass
class Member:
    """A process: its clock's offset and rate, what it read, and what of its writing is on its way."""

    name: str
    offset: float
    rate: float
    life: int = 0
    candidate: Candidate = field(init=False)
    shown: tuple[dict[str, Any] | None] | None = None
    question: tuple[float, dict[str, Any]] | None = None
    answer: float | None = None

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.life += 1
        self.candidate = candidate(f"{self.name}-{self.life}")
        self.shown = self.question = self.answer = None

    def now(self, time: float) -> float:
        return self.offset + self.rate * time


class Elections(RuleBasedStateMachine):
    """Reads, writes and answers are delayed at will, writes reach the server or not, processes die. The API server
    refuses what is written against another resourceVersion, and that is all it does."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0
        self.version = 0
        self.lease: dict[str, Any] | None = None
        # The fastest clock runs 1.4 times as fast as the slowest: more than any real one, less than 1.5.
        self.members = {
            name: Member(name, offset, rate)
            for name, offset, rate in zip(NAMES, (0, 1e6, -4e3), (1, 1.4, 1.2), strict=True)
        }

    names = st.sampled_from(NAMES)

    def wall(self) -> datetime:
        return datetime.fromtimestamp(self.time + 1e9, UTC)

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.0, 5.0, 9.9, 10.1, 15.0, 21.0]))
    def time_passes(self, seconds: float) -> None:
        self.time += seconds

    @rule(name=names)
    def read(self, name: str) -> None:
        self.members[name].shown = (copied(self.lease),)

    @precondition(lambda self: any(m.shown for m in self.members.values()))
    @rule(name=names)
    def decide(self, name: str) -> None:
        member = self.members[name]
        if member.shown and member.question is None and member.answer is None:
            sent = member.now(self.time)
            wish = member.candidate.wish(member.shown[0], sent, self.wall())
            member.question = None if wish is None else (sent, wish)
            member.shown = None

    @precondition(lambda self: any(m.question for m in self.members.values()))
    @rule(name=names, answered=st.booleans())
    def write_arrives(self, name: str, answered: bool) -> None:
        member = self.members[name]
        if member.question is None:
            return
        sent, wish = member.question
        member.question = None
        version = wish["metadata"].get("resourceVersion")
        if version == (self.lease["metadata"]["resourceVersion"] if self.lease else None):
            self.version += 1
            self.lease = {**copied(wish), "metadata": {**wish["metadata"], "resourceVersion": str(self.version)}}
            member.answer = sent if answered else None

    @precondition(lambda self: any(m.answer is not None for m in self.members.values()))
    @rule(name=names)
    def answer_arrives(self, name: str) -> None:
        member = self.members[name]
        if member.answer is not None:
            member.candidate.wrote(member.answer)
            member.answer = None

    @rule(name=names)
    def read_decide_write(self, name: str) -> None:
        """What mostly happens, so that long histories get somewhere."""
        self.read(name)
        self.decide(name)
        self.write_arrives(name, True)
        self.answer_arrives(name)

    @rule(silent=names, seconds=st.integers(1, 25))
    def one_is_cut_off(self, silent: str, seconds: int) -> None:
        """It believes what it believed, while the others look every second."""
        for _ in range(seconds):
            self.time += 1.0
            for name in NAMES:
                if name != silent:
                    self.read_decide_write(name)
                    self.there_are_never_two_leaders()

    @rule(name=names)
    def dies(self, name: str) -> None:
        self.members[name].restart()

    @rule(name=names)
    def releases(self, name: str) -> None:
        member = self.members[name]
        released = member.candidate.released(self.lease)
        member.restart()
        if released is not None:
            self.version += 1
            self.lease = {**released, "metadata": {**released["metadata"], "resourceVersion": str(self.version)}}

    @invariant()
    def there_are_never_two_leaders(self) -> None:
        leaders = [m.name for m in self.members.values() if m.candidate.leads(m.now(self.time))]
        assert len(leaders) <= 1, leaders

    def teardown(self) -> None:
        """Once nobody dies and nothing is lost, somebody leads within one duration and a look."""
        for _ in range(40):
            for member in self.members.values():
                member.question = member.answer = None
                self.read_decide_write(member.name)
                self.there_are_never_two_leaders()
            self.time += 1.0
        assert any(m.candidate.leads(m.now(self.time)) for m in self.members.values())


Elections.TestCase.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
