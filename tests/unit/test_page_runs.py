# SPDX-License-Identifier: Apache-2.0
"""The commands of the pages that need no cluster work, each in a folder with the files of its page."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dtjob.cli.main import app
from tests.unit.page_commands import (
    COMMANDS,
    NO_COMMANDS,
    PAGES,
    PLAIN_SHELL,
    PROGRAMS,
    ROOT,
    SESSION,
    blocks,
    of_blocks,
    of_text,
    parts,
)
from tests.unit.page_runs import NAMES, NOT_RUN, commands_of, everywhere, filled, text, tier, write_files

WITH_DTJOB = [
    page for page in PAGES if any(words[0] == "dtjob" for words in commands_of(page) if tier(words) == "unit")
]
VARIABLES = {
    one
    for some in re.findall(r"\$[({]([A-Z]+)[)}]|^([A-Z]+) [?:]?=", (ROOT / "Makefile").read_text(), re.M)
    for one in some
}
ENDS_WITH = {"dtjob convert --program tfjob.yaml": 1}
"""Exit codes other than 0. `test_tfjob_tutorial.py` checks that the page says so."""


@pytest.mark.parametrize("page", WITH_DTJOB, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_offline_commands_of_a_page_work(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    ours = [words for words in commands_of(page) if words[0] == "dtjob" and tier(words) == "unit"]
    assert {text(words): problem for words in ours if (problem := _run(words, tmp_path))} == {}


def _run(words: list[str], folder: Path) -> str:
    """Run a command of dtjob that needs no cluster; why it did not work, or nothing."""
    done = CliRunner().invoke(app(), trial(filled(words[1:])), input=(folder / "tfjob.yaml").read_text())
    wanted = ENDS_WITH.get(text(words), 0)
    if done.exit_code == wanted and done.output.strip() and not re.search(r"Traceback|\berror:", done.stderr, re.I):
        return ""
    return f"exit code {done.exit_code}: {done.output[-500:]} {done.exception!r}"


def trial(words: list[str]) -> list[str]:
    """The same without a cluster and without training: `dtjob run` of a manifest is only explained."""
    name, *rest = words
    if name == "run" and rest[0].endswith(".yaml"):
        return ["explain", rest[0]]
    if name == "run" and rest[0] == "-o":
        return ["explain", *rest, "job.yaml"]
    if name in ("run", "submit") and not {"--dry-run", "--help"} & set(rest):
        rest = [word for word in rest if word != "-f"]
        return [name, rest[0], "--dry-run", *rest[1:]]
    return ["init", NAMES["DIR"]] if words == ["init"] else words


def _of_make() -> list[list[str]]:
    """What the pages ask of make, and all targets without variables as one: make takes a second to begin."""
    asked = [words[1:] for words in everywhere("unit").values() if words[0] == "make"]
    plain = {target for words in asked if "=" not in text(words) for target in words}
    return [sorted(plain), *(words for words in asked if "=" in text(words))]


@pytest.mark.parametrize("words", _of_make(), ids=lambda words: words[0])
def test_make_knows_what_to_do_for_the_targets_of_the_pages(words: list[str]) -> None:
    done = subprocess.run(["make", "--dry-run", *words], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
    assert {word.partition("=")[0] for word in words if "=" in word} <= VARIABLES


@pytest.mark.parametrize("command", [name for name, words in everywhere("unit").items() if words[0] == "python"])
def test_a_module_that_the_pages_run_is_there(command: str) -> None:
    module = everywhere("unit")[command][2]
    found = importlib.util.find_spec(module)
    assert found.submodule_search_locations is None or importlib.util.find_spec(f"{module}.__main__") is not None


def test_commands_are_read_out_of_blocks_and_text(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\nmake images && kubectl get pods \\\n   -o wide > list.txt  # all\nW=1 .venv/bin/dtjob list | cat\n"
        "```\n```console\n$ make test\nmake lint\n```\n```yaml\nmake: test\n```\n"
        "Run `kubectl dtjob top digits` or `dtjob fetch JOB [PATH…]`.\n"
    )
    assert [*of_blocks(page), *of_text(page)] == [
        ["make", "images"],
        ["kubectl", "get", "pods", "-o", "wide"],
        ["dtjob", "list"],
        ["make", "test"],
        ["dtjob", "top", "digits"],
    ]


def test_each_block_of_code_says_whether_it_is_commands() -> None:
    languages = {language for page in PAGES for language, _ in blocks(page)}
    assert languages - {COMMANDS, SESSION, *NO_COMMANDS} == set()


def test_each_part_of_a_command_line_is_known() -> None:
    """So no command is left out because its program is another one."""
    known = {*PROGRAMS, *PLAIN_SHELL, "sudo"}
    found = {words[0] for page in PAGES for words in parts(page)}
    assert {word for word in found if Path(word).name not in known} == set()


def test_each_command_is_run_by_a_test_or_has_a_reason_why_not() -> None:
    found = {text(words): tier(words) for page in PAGES for words in commands_of(page)}
    assert {command for command, ran in found.items() if not ran} == set(NOT_RUN)
