# SPDX-License-Identifier: Apache-2.0
"""A job's place in its queue, as its status keeps it."""

from dtjob.api.status.placement import QueueEntry


def test_a_waiting_queue_entry_has_no_fields_of_an_admission() -> None:
    entry = QueueEntry(name="team-a", workload="w").admitted("u", "research", {"ps": {}})
    assert entry.runs
    assert not entry.waiting().runs
    assert entry.waiting().to_json() == {"name": "team-a", "workload": "w"}
