# SPDX-License-Identifier: Apache-2.0
"""What `make soak-hour` takes for growth, and for a report that is late or does not come."""

import time

from benchmarks.operators import soak_hour

FLAT = {"megabytes": 100.0, "sockets": 30.0, "tasks": 1000.0, "queue": 0.0, "latest": 5.0, "reports": 1.0}


def test_flat_rows_have_no_fault_and_few_rows_show_no_growth():
    assert soak_hour.faults([FLAT] * 6) == []
    assert soak_hour.faults([FLAT, FLAT | {"megabytes": 900.0}]) == []


def test_growth_in_the_last_third_is_a_fault():
    grown = [*[FLAT] * 5, FLAT | {"sockets": 60.0, "tasks": 1100.0}]
    assert soak_hour.faults(grown) == ["sockets grew from 30 to 60"]
    grown = [*[FLAT] * 5, FLAT | {"megabytes": 111.0, "tasks": 1101.0}]
    assert soak_hour.faults(grown) == ["megabytes grew from 100 to 111", "tasks grew from 1000 to 1101"]


def test_a_late_first_report_is_a_fault():
    assert soak_hour.faults([FLAT, FLAT | {"latest": 204.0}]) == ["a job waited 204 s for its first report"]


def test_reports_that_no_longer_come_are_a_fault():
    rows = [FLAT | {"reports": float(minute)} for minute in range(9)]
    assert soak_hour.faults(rows) == []
    rows[-4:] = [rows[-4]] * 4
    assert soak_hour.faults(rows) == ["no new job has told of its progress in the last 3 minutes"]


def test_a_job_that_has_told_nothing_waits_until_now():
    run = {"told": 100.0, "waits": time.monotonic() - 30, "deleted": 100.0}
    told, waits = sorted(soak_hour.first_reports(run, {"told": 104.0}, ["waits", "does not run"]))
    assert told == 4
    assert 30 <= waits < 60
