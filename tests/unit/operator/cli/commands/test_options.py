# SPDX-License-Identifier: Apache-2.0
"""Values of options that several commands have."""

import pytest

from dtjob.bad_input import BadInput
from dtjob.cli.commands.options import seconds_of


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("15m", 900), ("1h30m", 5400), ("2d", 172800)])
def test_durations_are_read_in_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text, "--since") == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1.5h", "5 m"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--since"):
        seconds_of(text, "--since")
