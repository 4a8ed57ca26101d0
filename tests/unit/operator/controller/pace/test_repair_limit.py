# SPDX-License-Identifier: Apache-2.0
"""How often one object is repaired where others want it otherwise."""

from datetime import timedelta

from dtjob.controller.pace.backoff import REPAIR_WAIT, REPAIRS_AT_ONCE, REPAIRS_FORGOTTEN_AFTER, RepairLimit
from tests.unit.operator.builders import NOW


def test_the_first_repairs_are_made_at_once_and_later_ones_after_ever_longer_waits():
    limit, now, waits = RepairLimit(), NOW, []
    for _ in range(REPAIRS_AT_ONCE + 12):
        wait = limit.wait("a", now)
        waits.append(wait)
        now += wait
        assert not limit.wait("a", now)
        limit.note("a", now)
    assert waits[:REPAIRS_AT_ONCE] == [timedelta()] * REPAIRS_AT_ONCE
    assert waits[REPAIRS_AT_ONCE : REPAIRS_AT_ONCE + 3] == [timedelta(seconds=seconds) for seconds in (2, 4, 8)]
    assert waits[-1] == timedelta(seconds=REPAIR_WAIT.longest)
    assert not limit.wait("b", now)
    assert limit.wait("a", now)
    assert not limit.wait("a", now + REPAIRS_FORGOTTEN_AFTER + timedelta(seconds=1))
