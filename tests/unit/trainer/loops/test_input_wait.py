# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.loops.input_wait: which share of the time is that of waits for input."""

import pytest

from dtjob_trainer.loops.input_wait import LEAST_SECONDS, MEASURED_SECONDS, MEASURED_STEPS, SECONDS, InputWait


class Counted:
    """What a task has counted so far."""

    def __init__(self) -> None:
        self.now = self.stepping = self.reading = self.busy = 0.0
        self.waits = InputWait(3, lambda: self.now)

    def after(self, seconds: float, stepping: float, reading: float, busy: float | None) -> float | None:
        """The share after so many more seconds, of which so many were spent so."""
        self.now, self.stepping, self.reading = self.now + seconds, self.stepping + stepping, self.reading + reading
        self.busy += busy or 0.0
        self.waits.see(self.stepping, self.reading, None if busy is None else self.busy)
        return self.waits.share()


def begun() -> Counted:
    counted = Counted()
    assert counted.after(9.0, 9.0, 9.0, 0.0) is None  # the time of tracing
    return counted


@pytest.mark.parametrize(
    ("stepping", "reading", "busy", "share"),
    [
        pytest.param(20.0, 5.0, 0.0, 0.25, id="the host waits for each step"),
        pytest.param(20.0, 15.0, 5.0, 0.75, id="devices have no work while the host reads"),
        pytest.param(20.0, 15.0, 20.0, 0.0, id="devices work while the host reads"),
        pytest.param(20.0, 15.0, 21.0, 0.0, id="a measured step took longer than most"),
        pytest.param(20.0, 15.0, 12.0, 0.4, id="devices work for a part of that time"),
        pytest.param(20.0, 2.0, 5.0, 0.1, id="devices rest, but not for input"),
        pytest.param(12.0, 11.0, 12.0, 0.0, id="callbacks and saves are no waits"),
    ],
)
def test_steps_wait_while_the_host_reads_and_devices_have_no_work(
    stepping: float, reading: float, busy: float, share: float
) -> None:
    assert begun().after(20.0, stepping, reading, busy) == pytest.approx(share)


def test_waits_are_those_of_the_last_minute_and_unknown_at_first() -> None:
    counted = begun()
    assert counted.after(LEAST_SECONDS - 1, LEAST_SECONDS - 1, LEAST_SECONDS - 1, 0.0) is None
    assert counted.after(36.0, 36.0, 3.6, 0.0) == pytest.approx(0.19)  # 4 + 3.6 s of 40
    shares = [counted.after(10.0, 10.0, 5.0, 0.0) for _ in range(int(SECONDS) // 10)]
    assert shares[-1] == pytest.approx(0.5)
    assert counted.after(0.25, 0.25, 0.0, None) is None
    assert counted.after(LEAST_SECONDS, LEAST_SECONDS, 1.0, 0.0) is None  # nobody knows when it began to be known
    assert counted.after(LEAST_SECONDS, LEAST_SECONDS, 1.0, 0.0) == pytest.approx(0.2)


def test_some_steps_are_measured_at_once_and_then_few() -> None:
    for speed, later in ((100.0, 100 * MEASURED_SECONDS), (0.5, MEASURED_STEPS)):
        waits = InputWait(3)
        assert not waits.measures(1, 0.0)  # steps are traced
        measured = [step for step in range(2, 3 * int(later)) if waits.measures(step, speed)]
        assert measured == [2, 3, 4, 4 + later, 4 + 2 * later]
