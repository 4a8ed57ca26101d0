# SPDX-License-Identifier: Apache-2.0
"""What one waits for, and for how long."""

import pytest

from dtjob.cli.bad_input import BadInput
from dtjob.cli.watching.wait import check_wanted, is_reached, seconds_of
from tests.unit.operator.cli.watching.jobs import RUNNING, job


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("1h30m", 5400), ("2d", 172800)])
def test_durations_are_read_in_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text, "--since") == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1.5h", "5 m"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--since"):
        seconds_of(text, "--since")


def test_states_to_wait_for_are_known_in_any_case() -> None:
    assert [check_wanted(word) for word in ("end", "COMPLETE", "succeeded")] == ["End", "Complete", "Complete"]
    with pytest.raises(BadInput, match="--for: Happy is none of End"):
        check_wanted("Happy")


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [("Running", True), ("Complete", False), ("End", False), ("Checkpoint", True), ("FirstStep", False)],
)
def test_each_state_of_a_running_job_is_reached_or_not(wanted: str, reached: bool) -> None:
    assert is_reached(job(**RUNNING), wanted) is reached


def test_a_failed_job_does_not_reach_end() -> None:
    assert not is_reached(job(phase="Failed"), "End")
    assert is_reached(job(phase="Succeeded"), "End")
