# SPDX-License-Identifier: Apache-2.0
"""What /healthz says."""

from __future__ import annotations

from aiohttp.test_utils import make_mocked_request

from dtjob.kube.election.liveness import Pulse


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_task_is_late_if_it_was_not_attempted_again_in_time() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    assert pulse.late() == []
    pulse.beat("resync", 10)
    pulse.beat("leader election", 5)
    clock.now = 7
    assert pulse.late() == ["leader election"]
    pulse.beat("leader election", 5)
    assert pulse.late() == []


def test_healthz_answers_503_with_the_names_of_late_tasks() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    request = make_mocked_request("GET", "/healthz")
    answer = pulse.answer(request)
    assert (answer.status, answer.text) == (200, "ok\n")
    pulse.beat("resync", 10)
    clock.now = 11
    answer = pulse.answer(request)
    assert (answer.status, answer.text) == (503, "late: resync\n")
