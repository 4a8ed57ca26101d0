# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference/ that `make reference` writes are fresh."""

from __future__ import annotations

from tools.reference import COMMAND_LINE, command_line


def test_the_page_of_the_command_line_is_fresh() -> None:
    assert COMMAND_LINE.read_text() == command_line(), "run `make reference`"


def test_each_command_and_option_is_on_it() -> None:
    page = command_line()
    for words in ("## `dtjob run`", "## `dtjob operator`", "--log-format", "--resync-seconds", "--dry-run"):
        assert words in page
