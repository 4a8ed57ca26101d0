# SPDX-License-Identifier: Apache-2.0
"""Events as a table."""

from dtjob.cli.watching.events import lines
from tests.unit.operator.client.verbs.jobs import NOW, event


def test_each_event_is_a_line() -> None:
    started = event("digits", "2026-11-23T11:58:00Z", "DistributedTrainingJob", "u", message="started")
    pulled = event("digits-worker-0-1", "2026-11-23T11:59:00Z", message="pulled\n image", count=3)
    assert list(lines([started, pulled], NOW)) == [
        "AGE       TYPE     REASON   OBJECT                  MESSAGE",
        "2m        Normal   R        job/digits              started",
        "1m (x3)   Normal   R        pod/digits-worker-0-1   pulled image",
    ]
