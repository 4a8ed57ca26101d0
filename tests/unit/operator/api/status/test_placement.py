# SPDX-License-Identifier: Apache-2.0
"""A job's place in its queue, as its status keeps it."""

from dtjob.api.status.placement import LARGEST_POD_SETS, QueueEntry
from dtjob.api.status.status import Status


def test_a_waiting_queue_entry_has_no_fields_of_an_admission() -> None:
    entry = QueueEntry(name="team-a", workload="w").admitted("u", "research", {"ps": {}})
    assert entry.runs
    assert not entry.waiting().runs
    assert entry.waiting().to_json() == {"name": "team-a", "workload": "w"}


def test_pod_sets_that_are_too_large_are_left_out_with_their_entry() -> None:
    large = {"worker": {"nodeSelector": {"x": "x" * LARGEST_POD_SETS}}}
    assert Status.read({"ready": "1/1", "queue": {"name": "team-a", "podSets": large}}) == Status(ready="1/1")
