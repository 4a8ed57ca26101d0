# SPDX-License-Identifier: Apache-2.0
import pytest

from dtjob.local.display.log_lines import Shown
from dtjob.local.display.lost_peers import HOLD_SECONDS, ErrorsHeld

EPOCH, NEXT = Shown("Epoch 3/5", ours=False), Shown("Epoch 4/5", ours=False)
TRACEBACK = [Shown("Traceback (most recent call last):", ours=False), Shown("UnavailableError: …", ours=False)]
RUNTIME = [Shown("E0000 00:00:1795837258.763645    4925 ring_alg.cc:291] Aborting RingReduce", ours=False)]
RESTARTS, ENDS = Shown("", ours=True, restarts=True), Shown("", ours=True, ends=True)


@pytest.mark.parametrize("error", [TRACEBACK, RUNTIME, [*RUNTIME, *TRACEBACK]])
def test_errors_over_a_lost_task_are_one_line(error: list[Shown]) -> None:
    held = ErrorsHeld()
    assert held.take([EPOCH, *error], 0.0) == [EPOCH]
    (said, after) = held.take([RESTARTS, NEXT], 1.0)
    assert said.ours
    assert said.text.startswith(f"{len(error)} lines about the lost task")
    assert after == NEXT


def test_errors_of_the_program_are_shown_when_its_process_ends() -> None:
    held = ErrorsHeld()
    assert held.take([EPOCH, *TRACEBACK], 0.0) == [EPOCH]
    assert held.take([ENDS], 0.1) == TRACEBACK
    assert held.take([EPOCH, *TRACEBACK, ENDS], 0.0) == [EPOCH, *TRACEBACK]


def test_errors_that_the_program_survives_are_shown_some_seconds_later() -> None:
    held = ErrorsHeld()
    assert held.take(TRACEBACK, 0.0) == []
    assert held.take([NEXT], HOLD_SECONDS - 0.1) == []
    assert held.take([], HOLD_SECONDS) == [*TRACEBACK, NEXT]
    assert held.take([EPOCH], HOLD_SECONDS) == [EPOCH]


def test_errors_of_a_task_without_peers_are_shown_at_once() -> None:
    assert ErrorsHeld(has_peers=False).take([EPOCH, *TRACEBACK, RESTARTS, NEXT], 0.0) == [EPOCH, *TRACEBACK, NEXT]


def test_a_restart_without_errors_is_told_by_the_story_alone() -> None:
    assert ErrorsHeld().take([EPOCH, RESTARTS, NEXT], 0.0) == [EPOCH, NEXT]
