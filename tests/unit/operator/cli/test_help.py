# SPDX-License-Identifier: Apache-2.0
"""The help has whole sentences, and says what a command cannot do alone."""

from pathlib import Path

from typer.testing import CliRunner

from dtjob.cli.main import app

DOCS = Path(__file__).parents[4] / "docs"


def test_the_sentence_of_each_command_fits_into_80_columns() -> None:
    shown = CliRunner().invoke(app(), ["--help"], env={"COLUMNS": "80"}).stdout
    commands = [line for line in shown.partition("Commands:")[2].splitlines() if line.strip()]
    assert len(commands) > 20
    assert [line for line in commands if not line.endswith(".") or line.endswith("...")] == []


def test_the_help_and_the_guides_say_which_package_shows_a_profile() -> None:
    said = "only if the image has the package xprof"
    assert said in " ".join(CliRunner().invoke(app(), ["tensorboard", "--help"]).stdout.split())
    for page in ("start/submit.md", "training/performance.md"):
        text = " ".join((DOCS / page).read_text().split())
        assert said.removeprefix("only ") in text.replace("`", ""), page
