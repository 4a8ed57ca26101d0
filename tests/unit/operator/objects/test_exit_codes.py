# SPDX-License-Identifier: Apache-2.0
"""Exit codes, held to contract.md."""

import re
import signal
from pathlib import Path

import pytest

from dtjob.objects import exit_codes

CONTRACT = (Path(__file__).parents[4] / "docs" / "contribute" / "contract.md").read_text()


def test_codes_are_those_of_the_contract() -> None:
    assert re.search(rf"^\| {exit_codes.TOLD_TO_END} \| got SIGTERM, saved, stopped", CONTRACT, re.M)
    assert f"ends with {exit_codes.RESTARTED_IN_VAIN}" in CONTRACT


@pytest.mark.parametrize(
    ("code", "number"),
    [(137, signal.SIGKILL), (143, signal.SIGTERM), (0, None), (1, None), (76, None), (128, None), (255, None)],
)
def test_an_exit_code_above_128_gives_its_signal(code: int, number: int | None) -> None:
    assert exit_codes.signal_of(code) == number
    assert number is None or exit_codes.of_signal(number) == code
