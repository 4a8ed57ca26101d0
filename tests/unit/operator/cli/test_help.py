# SPDX-License-Identifier: Apache-2.0
"""The help has whole sentences, and says what a command cannot do alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dtjob.cli.main import ALIASES, COMMANDS, GROUPS, app
from dtjob.client.verbs.fetch import WORDS

DOCS = Path(__file__).parents[4] / "docs"


def test_the_sentence_of_each_command_fits_into_80_columns() -> None:
    command = [sys.executable, "-m", "dtjob", "--help"]  # the runner of other tests forces a larger width
    shown = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}).stdout
    commands = [line for line in shown.partition("This machine:")[2].splitlines() if line.startswith("  ")]
    assert len(commands) > 20
    assert [line for line in commands if not line.endswith(".") or line.endswith("...")] == []


def test_commands_stand_once_in_groups() -> None:
    shown = CliRunner().invoke(app(), ["--help"]).stdout
    titles = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options:", *(f"{title}:" for title in GROUPS)]
    for name in COMMANDS:
        assert len(re.findall(rf"^  {name}  ", shown, re.MULTILINE)) == 1, name
    assert not [name for name in ALIASES if f"  {name} " in shown]


def test_the_help_of_fetch_names_each_word_for_files() -> None:
    shown = CliRunner().invoke(app(), ["fetch", "--help"], env={"COLUMNS": "200"}).stdout
    sentence, arguments = shown.partition("A pod reads")[0], shown.partition("Arguments:")[2].partition("Options:")[0]
    assert all(word in arguments for word in WORDS)
    assert all(word in sentence for word in WORDS if word != "all")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_plain_words_and_an_example(command: str) -> None:
    shown = CliRunner().invoke(app(), [command, "-h"], env={"COLUMNS": "200"}).stdout
    assert f"dtjob {command}" in shown.split("Example", 1)[1]
    usage, _, rest = shown.partition("\n")
    assert re.fullmatch(r"Usage: \w+ [\w-]+ \[OPTIONS\]( [A-Z]+…?| \[(-- )?[A-Z]+…?\]| -- [A-Z]+…)*", usage), usage
    assert not re.search(r"<\w+|\[default|range|\[required|Left out|Default: (\.$|\()", rest)


@pytest.mark.parametrize(("alias", "command"), ALIASES.items())
def test_an_alias_is_its_command_and_is_named_in_the_help(alias: str, command: str) -> None:
    shown = CliRunner().invoke(app(), [command, "--help"]).stdout
    assert alias in shown.partition("Alias")[2].partition(".")[0]
    same = CliRunner().invoke(app(), [alias, "--help"]).stdout
    assert same.replace(f"Usage: dtjob {alias}", f"Usage: dtjob {command}") == shown
