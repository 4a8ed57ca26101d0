# SPDX-License-Identifier: Apache-2.0
"""What must hold of `status.incidents`, whatever happens to a job: they agree with the restarts that are counted."""

from collections import Counter
from typing import Any

from dtjob.api.phase import Phase
from dtjob.api.status.block import LONGEST_SENTENCE
from dtjob.api.status.restarts import MOST_INCIDENTS
from dtjob.api.status.status import Status


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
