# SPDX-License-Identifier: Apache-2.0
"""How often one object is repaired where others want it otherwise."""

from datetime import timedelta

from dtjob.controller.pace.backoff import AT_ONCE, FORGOTTEN_AFTER, WAIT, RepairLimit
from tests.unit.operator.builders import NOW


def test_the_first_repairs_are_made_at_once_and_later_ones_after_ever_longer_waits():
    limit, now, waits = RepairLimit(), NOW, []
    for _ in range(AT_ONCE + 12):
        wait = limit.wait("a", now)
        waits.append(wait)
        now += wait
        assert not limit.wait("a", now)
        limit.note("a", now)
    assert waits[:AT_ONCE] == [timedelta()] * AT_ONCE
    assert waits[AT_ONCE : AT_ONCE + 3] == [timedelta(seconds=seconds) for seconds in (2, 4, 8)]
    assert waits[-1] == timedelta(seconds=WAIT.longest)
    assert not limit.wait("b", now)
    assert limit.wait("a", now)
    assert not limit.wait("a", now + FORGOTTEN_AFTER + timedelta(seconds=1))
