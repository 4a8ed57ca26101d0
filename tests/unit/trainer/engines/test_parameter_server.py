# SPDX-License-Identifier: Apache-2.0
"""When the chief hands out more steps, which results are kept, and which one is the newest that is done."""

from threading import Event
from types import SimpleNamespace

from dtjob_trainer.engines.parameter_server import KEPT_SECONDS, Results


def result(done: bool) -> SimpleNamespace:
    """What `Results` reads of a RemoteValue."""
    event = Event()
    if done:
        event.set()
    return SimpleNamespace(_status_available_event=event)


def test_the_last_done_result_is_the_last_step_however_soon_it_followed() -> None:
    results, steps = Results(5), [result(True), result(True), result(True)]
    assert results.last_done() is None
    for step in steps:
        results.add(step, now=7.0)
    assert results.last_done() is steps[-1]


def test_only_some_results_of_short_steps_are_kept() -> None:
    results, steps = Results(50), [result(False) for _ in range(40)]
    for number, step in enumerate(steps):
        results.add(step, now=number * KEPT_SECONDS / 10)
    for step in steps[:35]:
        step._status_available_event.set()
    assert 35 - 12 < steps.index(results.last_done()) < 35


def test_a_step_that_hangs_does_not_hide_later_ones_that_are_done() -> None:
    results, hangs = Results(2), result(False)
    results.add(hangs, now=0.0)
    for number in range(1, 20):
        last = result(True)
        results.add(last, now=float(number))
    results.add(result(False), now=20.0)
    assert results.last_done() is last


def test_the_oldest_result_is_waited_for_if_no_step_is_done() -> None:
    results, steps = Results(5), [result(False), result(False)]
    for number, step in enumerate(steps):
        results.add(step, now=float(number))
    assert results.last_done() is steps[0]
