# SPDX-License-Identifier: Apache-2.0
"""Who is asked when: silent chiefs starve neither their namespace nor the others."""

from __future__ import annotations

import itertools

import pytest

from dtjob.controller.pace.asking import AT_ONCE, AT_ONCE_IN_NAMESPACE, LONGEST_PAUSE_SECONDS, Asking, Supervisor

EVERY = 5.0


def chief(namespace: str, number: int = 0, host: str = "10.0.0.1") -> Supervisor:
    return Supervisor((namespace, f"job-{number}"), "chief-0", f"{namespace}-{number}", host, 2223)


def namespaces(chosen: list[Supervisor]) -> set[str]:
    return {one.job[0] for one in chosen}


def test_each_is_asked_once_a_round() -> None:
    asking, one = Asking(EVERY), chief("a")
    asking.seen([one], 0)
    assert asking.next(0) == [one]
    assert asking.next(1) == []
    asking.answered(one, 1)
    assert asking.next(5.9) == []
    asking.seen([one], 6)
    assert asking.next(6) == [one]


def test_a_supervisor_that_is_gone_is_forgotten() -> None:
    asking, one = Asking(EVERY), chief("a")
    asking.seen([one], 0)
    asking.next(0)
    asking.seen([], 1)
    asking.answered(one, 1)
    assert asking.next(100) == []
    asking.seen([one], 100)
    assert asking.next(100) == [one]


def test_a_supervisor_that_comes_back_during_its_request_is_asked_again_later() -> None:
    asking, one = Asking(EVERY), chief("a")
    asking.seen([one], 0)
    asking.next(0)
    asking.seen([], 1)
    asking.seen([one], 2)
    assert asking.next(2) == []
    asking.stayed_silent(one, 3)
    assert asking.next(3 + EVERY) == [one]


def test_silent_supervisors_are_asked_less_and_less_often() -> None:
    asking, one = Asking(EVERY), chief("a")
    asking.seen([one], 0)
    pauses, now = [], 0.0
    for _ in range(7):
        began = now
        while not asking.next(now):
            now += 0.5
        pauses.append(now - began)
        asking.stayed_silent(one, now)
    assert pauses == [0, 5, 10, 20, 40, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]
    asking.next(now + LONGEST_PAUSE_SECONDS)
    asking.answered(one, now)
    assert asking.next(now + EVERY) == [one], "an answer forgives all"


def test_the_supervisor_of_a_new_pod_is_asked_at_once() -> None:
    asking, one = Asking(EVERY), chief("a")
    asking.seen([one], 0)
    for now in (0.0, 5.0, 15.0):
        asking.next(now)
        asking.stayed_silent(one, now)
    successor = Supervisor(one.job, one.task, "another pod", "10.0.0.2", 2223)
    asking.seen([successor], 16)
    assert asking.next(16) == [successor]


def test_a_namespace_gets_half_of_the_requests_at_most() -> None:
    asking = Asking(EVERY)
    crowd = [chief("crowd", number) for number in range(100)]
    asking.seen([*crowd, chief("b")], 0)
    chosen = asking.next(0)
    assert len([one for one in chosen if one.job[0] == "crowd"]) == AT_ONCE_IN_NAMESPACE // 2
    assert namespaces(chosen) == {"crowd", "b"}


def test_supervisors_that_answer_have_half_of_the_requests_at_once() -> None:
    asking = Asking(EVERY)
    well = [chief(f"well-{number}") for number in range(AT_ONCE)]
    now = 0.0
    asking.seen(well, now)
    while chosen := asking.next(now):
        for one in chosen:
            asking.answered(one, now)
    hung = [chief(f"hung-{number}") for number in range(200)]
    asking.seen([*hung, *well], now)
    assert len(asking.next(now)) == AT_ONCE // 2
    now += EVERY
    assert namespaces(asking.next(now)) == {one.job[0] for one in well[: AT_ONCE // 2]}


@pytest.mark.parametrize("spread", [1, 200], ids=["in one namespace", "in as many namespaces"])
def test_a_healthy_job_is_asked_in_time_beside_200_that_hang(spread: int) -> None:
    """Each hung one holds its slot for 3 s; a turn is a tenth of a second. What counts is the longest wait between
    two answers of the healthy one."""
    asking, well = Asking(EVERY), chief("well")
    asking.seen([well], 0)
    asking.next(0)
    asking.answered(well, 0)
    hung = [chief(f"hung-{number % spread}", number) for number in range(200)]
    asking.seen([well, *hung], 0)
    ends: dict[Supervisor, float] = {}
    answered_at = [0.0]
    for turn in range(6000):
        now = turn / 10
        for one in [one for one, at in ends.items() if at <= now]:
            del ends[one]
            asking.stayed_silent(one, now)
        for one in asking.next(now):
            if one is well:
                asking.answered(well, now)
                answered_at.append(now)
            else:
                ends[one] = now + 3
        assert len(ends) <= AT_ONCE
    waits = [later - earlier for earlier, later in itertools.pairwise(answered_at)]
    assert max(waits) <= EVERY + 0.2


def test_an_address_of_ipv6_is_written_as_urls_have_it() -> None:
    assert (chief("a").address, chief("a", host="fd00::7").address) == ("10.0.0.1:2223", "[fd00::7]:2223")
