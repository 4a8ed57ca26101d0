# SPDX-License-Identifier: Apache-2.0
import pytest

from dtjob.local.display.log_lines import HOLD_SECONDS, ErrorsHeld, Shown, shown

AT = "time=2026-11-28T03:25:47.583Z"


@pytest.mark.parametrize("line", ["epoch 3: loss 0.5", "level of the sea", "", "time=1 level=info message=mine"])
def test_lines_of_the_program_are_shown_as_they_are(line: str) -> None:
    assert shown(line, live=False) == [Shown(line, ours=False)]


@pytest.mark.parametrize(
    "line",
    [
        f'{AT} level=info task=worker-0 message="go: generation 1"',
        f'{AT} level=warning task=worker-0 step=3 message="generation 1 is over: worker-1 was killed (SIGKILL)"',
    ],
)
def test_lines_of_dtjob_that_the_story_tells_are_left_out(line: str) -> None:
    assert shown(line, live=False) == []


def test_the_end_of_a_process_is_known_by_its_supervisors_line() -> None:
    again = f'{AT} level=warning task=worker-0 message="restarting in place (1): worker-1 was killed (SIGKILL)"'
    assert shown(again, live=True) == [Shown("", ours=True, restarts=True)]
    ends = f'{AT} level=error task=worker-0 message="it failed: ending with 1" exitCode=1 exception="E: \\"x\\""'
    assert shown(ends, live=True) == [Shown("", ours=True, ends=True)]


def test_warnings_are_shown_as_dtjobs_own_lines() -> None:
    line = f'{AT} level=warning task=worker-0 step=3 message="write \\"x\\" to a volume"'
    assert shown(line, live=True) == [Shown('write "x" to a volume', ours=True)]


@pytest.mark.parametrize("live", [True, False])
def test_epochs_are_shown_with_their_metrics(live: bool) -> None:
    line = f'{AT} level=info task=chief-0 step=690 message="epoch 3/30" loss=0.0123353 accuracy=0.997216 note=x'
    assert shown(line, live=live) == [Shown("epoch 3/30: accuracy 0.9972, loss 0.01234", ours=True)]


def test_epochs_of_a_silent_program_are_shown_where_no_view_is() -> None:
    line = f'{AT} level=debug task=chief-0 step=690 message="epoch 3/30" loss=0.5'
    assert shown(line, live=False) == [Shown("epoch 3/30: loss 0.5", ours=True)]
    assert shown(line, live=True) == []


def test_a_bar_that_was_killed_is_a_line_of_its_own() -> None:
    line = f'\x1b[1m17/52\x1b[0m ━━ {AT} level=warning task=worker-0 message="no space on the disk"'
    assert shown(line, live=True) == [Shown("17/52 ━━", ours=False), Shown("no space on the disk", ours=True)]


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
    assert ErrorsHeld().take([EPOCH, *TRACEBACK, ENDS], 0.0) == [EPOCH, *TRACEBACK]


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
