# SPDX-License-Identifier: Apache-2.0
"""What a large job's share comes to on API servers of several kinds."""

from collections.abc import Callable, Iterator

from dtjob.controller.pace.slots import (
    FIRST_SHARE,
    GROUP,
    LATELY_SECONDS,
    REMEMBERED_SECONDS,
    SMALLEST_SHARE,
    GivingWay,
)

MOST = 25
QUIET = 0.005
"""Seconds that a call takes on a quiet server."""
POD, SERVICE = "Create Pod", "Create Service"
Takes = Callable[[float], float]
"""How long a call takes where so many are under way."""


def has_room(under_way: float) -> float:
    """As with dozens of cores."""
    return QUIET


def has_two_cores(under_way: float) -> float:
    """Scheduler and pods take one of them."""
    return QUIET * max(1.0, 3 * under_way)


class Server:
    """One that answers a large job, and a small one's call each half second."""

    def __init__(self, takes: Takes) -> None:
        self.takes, self.way, self.now = takes, GivingWay(MOST), 1000.0

    def quiet(self, calls: int = GROUP) -> None:
        """Answer so many calls, none beside another."""
        for _ in range(calls):
            self.way.answered(POD, self.takes(0), self.now)

    def answer(self, calls: int) -> None:
        """Answer so many calls of a large job, as many at once as it may make."""
        for _ in range(calls):
            share = self.way.share(self.now)
            self.now += self.takes(share) / share
            self.way.answered(POD, self.takes(share), self.now)

    def beside_small_jobs(self, seconds: float) -> Iterator[float]:
        """Shares over so many seconds in which small jobs come."""
        end = self.now + seconds
        while self.now < end:
            self.way.asked(self.now)
            until = self.now + 0.5
            while self.now < until:
                self.answer(1)
                yield self.way.share(self.now)


def test_a_large_job_alone_has_all() -> None:
    server = Server(has_two_cores)
    server.quiet()
    server.answer(500)
    assert server.way.share(server.now) == MOST


def test_a_server_with_room_is_asked_as_much_as_ever_at_once() -> None:
    server = Server(has_room)
    server.quiet()
    shares = server.beside_small_jobs(0.5)
    assert next(shares) == FIRST_SHARE
    assert list(shares)[-1] == MOST


def test_a_server_without_room_has_answers_hardly_slower() -> None:
    server = Server(has_two_cores)
    server.quiet()
    server.answer(500)
    shares = list(server.beside_small_jobs(10))
    settled = shares[GROUP:]
    assert max(has_two_cores(share) for share in settled) <= 3 * QUIET
    assert min(settled) >= SMALLEST_SHARE


def test_a_large_job_has_all_slots_again_when_no_small_jobs_come() -> None:
    server = Server(has_two_cores)
    server.quiet()
    list(server.beside_small_jobs(5))
    assert server.way.share(server.now) < 2
    server.now += LATELY_SECONDS + 0.1
    assert server.way.share(server.now) == MOST


def test_a_server_that_became_slower_for_good_is_no_reason_to_make_few_calls_for_ever() -> None:
    server = Server(has_room)
    server.quiet()
    list(server.beside_small_jobs(1))
    server.takes = lambda under_way: 10 * QUIET
    *before, last = server.beside_small_jobs(2 * REMEMBERED_SECONDS + 10)
    assert min(before) == SMALLEST_SHARE
    assert last == MOST


def test_a_server_that_never_was_seen_quiet_is_found_to_be_full() -> None:
    server = Server(has_two_cores)
    server.answer(500)
    settled = list(server.beside_small_jobs(10))[GROUP:]
    assert max(settled) <= 3


def test_pods_that_take_longer_than_all_else_whatever_is_under_way_are_no_reason_to_make_few_calls() -> None:
    """They pass through a webhook."""
    server = Server(lambda under_way: 4 * QUIET)
    for _ in range(GROUP):
        server.way.answered(SERVICE, QUIET, server.now)
    *_, last = server.beside_small_jobs(3)
    assert last == MOST


def test_nothing_is_kept_of_kinds_of_calls_that_ended_long_ago() -> None:
    way = GivingWay(MOST)
    for kind in range(1000):
        for _ in range(GROUP + 1):
            way.answered(kind, QUIET, 0.0)
    for number in range(1, 4):
        way.answered(POD, QUIET, number * (REMEMBERED_SECONDS + 1))
    assert len(way._groups) + len(way._quickest) + len(way._quickest_before) <= 2
