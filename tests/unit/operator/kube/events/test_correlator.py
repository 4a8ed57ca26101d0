# SPDX-License-Identifier: Apache-2.0
"""Which events are recorded anew, and which are counted."""

from __future__ import annotations

from datetime import timedelta

from dtjob.kube.events.correlator import COMBINED, MOST_ALIKE, REMEMBERED, WINDOW, Correlator
from dtjob.plan.actions import Event
from tests.unit.operator.builders import NOW, at

EVENT = Event("Warning", "FailedCreate", "exceeded quota")


def test_an_equal_event_is_counted_for_ten_minutes():
    correlator = Correlator()
    first, again = correlator.correlate("a", EVENT, NOW), correlator.correlate("a", EVENT, at(60))
    assert (first.count, again.count) == (1, 2)
    assert (again.suffix, again.first, again.event) == (first.suffix, NOW, EVENT)
    later = correlator.correlate("a", EVENT, at(60) + WINDOW + timedelta(seconds=1))
    assert later.count == 1
    assert later.suffix != first.suffix


def test_an_event_with_another_job_reason_or_message_is_another_event():
    correlator = Correlator()
    others = [Event("Warning", "FailedCreate", "a"), Event("Warning", "Failed", "exceeded quota")]
    recorded = [correlator.correlate("a", one, NOW) for one in (EVENT, *others)] + [
        correlator.correlate("b", EVENT, NOW)
    ]
    assert [one.count for one in recorded] == [1, 1, 1, 1]
    assert len({one.suffix for one in recorded}) == 4


def test_many_similar_events_are_combined_into_one():
    correlator = Correlator()
    recorded = [
        correlator.correlate("a", Event("Warning", "FailedCreate", f"pod {n}"), at(n)) for n in range(4 * MOST_ALIKE)
    ]
    assert len({one.suffix for one in recorded}) == MOST_ALIKE + 1
    assert recorded[-1].count == 3 * MOST_ALIKE
    assert recorded[-1].event.message == f"{COMBINED}pod {4 * MOST_ALIKE - 1}"


def test_the_number_of_remembered_events_is_bounded():
    correlator = Correlator()
    for number in range(REMEMBERED + 100):
        correlator.correlate(f"job {number}", EVENT, NOW)
    assert len(correlator._known) == REMEMBERED
    assert correlator.correlate("job 0", EVENT, NOW).count == 1
