# SPDX-License-Identifier: Apache-2.0
"""Events on a job, within what an API server takes."""

from dataclasses import replace
from datetime import timedelta

from dtjob.kube.events.event import (
    COMBINED,
    LONGEST_WARNING,
    MOST_ALIKE,
    REMEMBERED,
    WINDOW,
    Correlator,
    Recorded,
    event_object,
    newest_warning,
    repetition,
)
from dtjob.plan.actions import Event
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.simulation.operator import job_manifest

JOB = job_manifest(builders.job())
JOB["metadata"]["resourceVersion"] = "7"
RESTARTING = Event("Warning", "Restarting", "worker-1 failed")


def test_an_event_points_to_the_job_and_lies_beside_it() -> None:
    made = event_object(JOB, Recorded(RESTARTING, "1a2b", 1, NOW, NOW))
    assert made["metadata"] == {"name": "digits.1a2b", "namespace": "default"}
    assert made["involvedObject"]["namespace"] == "default"
    assert made["involvedObject"]["uid"] == builders.JOB_UID
    assert made["involvedObject"]["resourceVersion"] == "7"
    assert (made["type"], made["reason"], made["message"]) == ("Warning", "Restarting", "worker-1 failed")
    assert made["firstTimestamp"] == made["lastTimestamp"] == "2026-11-21T10:00:00Z"


def test_a_message_is_cut_to_what_is_taken() -> None:
    assert len(repetition(Recorded(Event("Normal", "A", "x" * 5000), "1a2b", 1, NOW, NOW))["message"]) == 1024


def warning(reason: str, message: str, **times: object) -> dict[str, object]:
    return {"reason": reason, "message": message, **times}


def test_the_newest_warning_about_a_pod_is_one_line() -> None:
    events = [
        warning("FailedMount", "old", lastTimestamp="2026-11-21T10:00:00Z"),
        warning("FailedAttachVolume", "new:\n  no disk", eventTime="2026-11-21T10:05:00Z", lastTimestamp=None),
        warning("FailedMount", "older", series={"lastObservedTime": "2026-11-21T10:04:00Z"}),
        warning("FailedScheduling", "no node", lastTimestamp="2026-11-21T10:06:00Z"),
    ]
    assert newest_warning(events) == "FailedAttachVolume: new: no disk"
    assert newest_warning(events[3:]) == ""
    assert len(newest_warning([warning("FailedMount", "x" * 2000)])) == LONGEST_WARNING


EVENT = Event("Warning", "FailedCreate", "exceeded quota")


def test_an_equal_event_is_counted_for_ten_minutes():
    correlator = Correlator()
    first = replace(correlator.correlate("a", EVENT, NOW))
    again = replace(correlator.correlate("a", EVENT, at(60)))
    assert (first.count, again.count) == (1, 2)
    assert (again.suffix, again.first, again.last, again.event) == (first.suffix, NOW, at(60), EVENT)
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
