# SPDX-License-Identifier: Apache-2.0
"""A job's place in its queue, as its status keeps it."""

from __future__ import annotations

from dtjob.api.status.placement import QueueEntry


def test_what_is_written_is_read_again_also_of_a_newer_operator() -> None:
    fields = {
        "name": "team-a",
        "workload": "w",
        "uid": "u",
        "clusterQueue": "research",
        "podSets": {"ps": {}},
        "new": 1,
    }
    assert QueueEntry.model_validate(fields).to_json() == fields


def test_who_waits_has_nothing_of_an_admission() -> None:
    entry = QueueEntry(name="team-a", workload="w").admitted("u", "research", {"ps": {}})
    assert entry.runs
    assert not entry.waiting().runs
    assert entry.waiting().to_json() == {"name": "team-a", "workload": "w"}
