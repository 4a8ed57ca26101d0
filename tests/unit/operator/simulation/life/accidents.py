# SPDX-License-Identifier: Apache-2.0
"""What happens to the operator: it is killed between any two calls, calls fail, and its watch lags, stops and repeats
itself."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.controller.cluster import ClusterError, Refused
from tests.unit.operator.simulation.life.stage import MAY_FAIL_ALONE, Stage


class Accidents(Stage):
    """Crashes, failed calls, and a cache that is cold or stale."""

    @rule(seconds=st.sampled_from((0.015, 0.1, 1.0, 3.0, 20.0, 60.0, 310.0, 700.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.run(seconds)

    @rule(calls=st.integers(0, 8), before=st.booleans())
    def operator_will_crash(self, calls: int, before: bool) -> None:
        self.world.cluster.crash_in, self.world.cluster.crash_before = calls, before

    @rule()
    def operator_is_killed(self) -> None:
        self.world.restart()

    @rule(refused=st.booleans())
    def a_call_fails(self, refused: bool) -> None:
        self.world.cluster.fail_next = Refused("a webhook says no") if refused else ClusterError("timeout")

    @rule(call=st.sampled_from(MAY_FAIL_ALONE), down=st.booleans())
    def calls_are_refused(self, call: str, down: bool) -> None:
        """By an admission policy, or since a webhook is down."""
        self.refuse(call, down)

    @precondition(lambda self: self.world.cluster.refusing)
    @rule()
    def calls_are_let_through(self) -> None:
        self.world.cluster.refusing.clear()

    @precondition(lambda self: self.world.watching)
    @rule()
    def watch_is_lost(self) -> None:
        self.world.lose_watch()

    @precondition(lambda self: not self.world.watching)
    @rule()
    def watch_is_back(self) -> None:
        self.world.watch_again()

    @rule()
    def resync(self) -> None:
        self.world.resync()

    @precondition(lambda self: self.world.cluster.log)
    @rule(data=st.data(), count=st.integers(1, 5))
    def old_events_come_again(self, data: st.DataObject, count: int) -> None:
        events = self.world.cluster.log[-count:]
        for place in data.draw(st.permutations(range(len(events)))):  # a failing life is printed with what is drawn
            self.world.deliver(*events[place])
