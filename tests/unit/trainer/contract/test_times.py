# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.times: RFC 3339 in UTC, to and fro."""

import re
import time

import pytest

from dtjob_trainer.contract.times import seconds_of, timestamp, to_the_second


def test_the_present_time_has_milliseconds() -> None:
    text = timestamp()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", text)
    assert seconds_of(text) == pytest.approx(time.time(), abs=60)


def test_a_time_is_cut_to_the_second() -> None:
    assert to_the_second(1_790_000_000.9) == "2026-09-21T14:13:20Z"
    assert seconds_of("2026-09-21T14:13:20Z") == 1_790_000_000


@pytest.mark.parametrize("time", [None, 5, "", "yesterday"])
def test_a_value_that_is_no_time_has_no_seconds(time: object) -> None:
    assert seconds_of(time) is None
