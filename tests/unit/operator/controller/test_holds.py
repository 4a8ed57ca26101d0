"""When what was refused may be tried again."""

from __future__ import annotations

from dtjob.controller.holds import IN_THE_WAY, Holds

KEY = ("default", "digits")


def test_what_was_refused_is_held_and_then_tried():
    holds = Holds()
    assert not holds.holds(KEY, "Pod/a", 100)
    holds.refused(KEY, "Pod/a", 100)
    assert holds.holds(KEY, "Pod/a", 100 + IN_THE_WAY.longest - 0.1)
    assert not holds.holds(KEY, "Pod/a", 100 + IN_THE_WAY.longest)
    assert not holds.holds(KEY, "Pod/b", 100)
    assert not holds.holds(("default", "other"), "Pod/a", 100)


def test_what_is_in_the_way_is_looked_for_ever_later():
    holds, now, waits = Holds(), 100.0, []
    for _ in range(6):
        holds.in_the_way(KEY, "Pod/a", now, "uid")
        wait = holds.next_try(KEY, now)
        assert wait is not None
        waits.append(wait)
        now += wait
    assert waits == [1, 2, 4, 8, 15, 15]
    assert (holds.tries(KEY, "Pod/a"), holds.blocker(KEY, "Pod/a")) == (6, "uid")


def test_the_next_try_is_the_earliest():
    holds = Holds()
    assert holds.next_try(KEY, 0) is None
    holds.refused(KEY, "Pod/a", 100)
    holds.refused(KEY, "Pod/b", 105)
    assert holds.next_try(KEY, 110) == 5
    assert holds.next_try(KEY, 116) == IN_THE_WAY.first
    holds.lift(KEY, "Pod/a")
    assert holds.next_try(KEY, 110) == 10


def test_what_nobody_wants_is_forgotten():
    holds = Holds()
    holds.refused(KEY, "Pod/a", 100)
    holds.refused(KEY, "Pod/b", 100)
    holds.keep(KEY, {"Pod/b"})
    assert not holds.holds(KEY, "Pod/a", 100)
    assert holds.holds(KEY, "Pod/b", 100)
    holds.keep(KEY, set())
    assert holds.next_try(KEY, 100) is None


def test_what_stands_and_cannot_be_put_right_is_told_from_what_is_missing():
    holds = Holds()
    holds.refused(KEY, "Service/digits", 0.0, stands=True)
    holds.refused(KEY, "ConfigMap/digits", 0.0)
    assert [holds.stands(KEY, f"{kind}/digits") for kind in ("Service", "ConfigMap", "NetworkPolicy")] == [
        True,
        False,
        False,
    ]
    assert holds.holds(KEY, "Service/digits", 1.0)
