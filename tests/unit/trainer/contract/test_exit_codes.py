# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.exit_codes: the codes of processes. `make reference` writes a page of them."""

from dtjob_trainer.contract import exit_codes


def test_a_signal_is_shown_as_a_shell_shows_it() -> None:
    assert [exit_codes.of_process(code) for code in (0, 3, -9, -15)] == [0, 3, 137, exit_codes.TERMINATED]
    assert exit_codes.of_signal(15) == exit_codes.TERMINATED


def test_no_two_meanings_have_one_exit_code() -> None:
    codes = [value for name, value in vars(exit_codes).items() if name.isupper()]
    assert sorted(codes) == sorted(set(codes))
