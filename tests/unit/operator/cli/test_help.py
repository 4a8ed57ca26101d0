# SPDX-License-Identifier: Apache-2.0
"""The list of commands in `dtjob --help` has whole sentences."""

from __future__ import annotations

from typer.testing import CliRunner

from dtjob.cli.main import app


def test_the_sentence_of_each_command_fits_into_80_columns() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).stdout
    commands = [line for line in shown.partition("Commands:")[2].splitlines() if line.strip()]
    assert len(commands) > 20
    assert [line for line in commands if not line.endswith(".") or line.endswith("...")] == []
