# SPDX-License-Identifier: Apache-2.0
"""What must hold of what a status tells of the past: the incidents of a job, and the time that it spent."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.phase import Phase
from dtjob.api.status.block import LONGEST_SENTENCE
from dtjob.api.status.restarts import MOST_INCIDENTS
from dtjob.api.status.status import Status
from tests.unit.operator.simulation.facts import is_suspended


def check_story(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Each counted restart is one incident, and the failure that ends a job is one more unless it belongs to the last.

    What is known of an incident stays, unless more of it fails. Its cause may be corrected, as the count of it is.
    """
    before, after = Status.read(old), Status.read(new)
    story, total, causes = after.incidents, after.restarts.total, after.restarts.causes
    numbers = [one.number for one in story]
    ends = after.phase is Phase.FAILED and numbers[-1:] == [total + 1]
    assert len(story) <= MOST_INCIDENTS
    assert numbers == list(range(1, total + ends + 1))[-MOST_INCIDENTS:], f"{numbers} of {total} restarts"
    assert all(len(one.message) <= LONGEST_SENTENCE for one in story)
    if after.phase is not Phase.FAILED and total <= MOST_INCIDENTS:
        assert Counter(one.reason for one in story) == Counter(causes), f"{story} and {causes}"
    if after.phase is Phase.FAILED and before.phase is not Phase.FAILED and "Deadline" not in str(after.reason):
        assert (story[-1].task, story[-1].reason) == (after.last_failure.task, after.last_failure.cause)
    for one in story:
        assert one.to_step is None or one.from_step is None or one.to_step <= one.from_step, f"{one} went forward"
    known = {one.number: one for one in before.incidents}
    for one in story:
        if (was := known.get(one.number)) is not None:
            assert was.time == one.time
            closed = was.seconds_lost is not None and (one.seconds_lost is not None or one is not story[-1])
            was, one = (each.but(task="", reason="", message="") for each in (was, one))
            assert not closed or was == one, "what is known of an incident has changed"


ROUNDING = 0.05


def check_time_spent(old: dict[str, Any], new: dict[str, Any]) -> None:
    """From one status to the next as much is counted as time has passed, but for suspension; and what was re-done stays
    so."""
    before, after = old.get("goodput"), new.get("goodput")
    if not before:
        return
    assert after, "the time that was counted is forgotten"
    passed = max(_until(new) - _until(old), timedelta(0))
    wanted = 0.0 if is_suspended(old) and is_suspended(new) else passed.total_seconds()
    spent = [_seconds(one) for one in (before, after)]
    counted = sum(spent[1].values()) - sum(spent[0].values())
    slack = passed.total_seconds() if is_suspended(old) else 0.0  # it may have gone on just now
    assert wanted - slack - ROUNDING <= counted <= wanted + ROUNDING, f"{counted} s counted in {passed}"
    for name in ("redone", "saving"):
        assert spent[1].get(name, 0) >= spent[0].get(name, 0) - ROUNDING, f"less time {name}"
    redone = [one.get("steps", {}).get("redone", 0) for one in (before, after)]
    assert redone[1] >= redone[0]
    assert 0 <= after.get("percentage", 0) <= 100


def _until(status: dict[str, Any]) -> datetime:
    return times.parse(status["internal"]["goodput"]["until"])


def _seconds(goodput: dict[str, Any]) -> dict[str, float]:
    return {name: float(text) for name, text in goodput.get("seconds", {}).items()}
