# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.exit_codes: each as contract.md has it."""

import re
from pathlib import Path

from dtjob_trainer.contract import exit_codes

CONTRACT = Path(__file__).resolve().parents[4] / "docs" / "contribute" / "contract.md"


def test_a_signal_is_shown_as_a_shell_shows_it() -> None:
    assert [exit_codes.of_process(code) for code in (0, 3, -9, -15)] == [0, 3, 137, exit_codes.TERMINATED]
    assert exit_codes.of_signal(15) == exit_codes.TERMINATED


def test_every_exit_code_is_in_the_contract_once() -> None:
    codes = [value for name, value in vars(exit_codes).items() if name.isupper()]
    assert sorted(codes) == sorted(set(codes))
    text = CONTRACT.read_text()
    assert [code for code in codes if not re.search(rf"(?:\| |exit |with ){code}\b", text)] == []
