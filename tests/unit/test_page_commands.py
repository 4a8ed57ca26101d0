# SPDX-License-Identifier: Apache-2.0
"""Each command on a page is one that its program takes: of dtjob, make and helm. `tests/cluster` runs those of
kubectl."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from typer.exceptions import Exit, TyperException

from dtjob.cli.main import app
from tests.unit.page_commands import PAGES, ROOT, of_blocks, of_text

DTJOB: Any = typer.main.get_command(app())
MAKEFILE = (ROOT / "Makefile").read_text()
SCENARIOS = re.findall(r"^SCENARIOS := (.*)$", MAKEFILE, re.M)[0].split()
TARGETS = {*re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.M), *(f"bench-{name}" for name in SCENARIOS)}
VARIABLES = set(re.findall(r"\$[({]([A-Z]+)[)}]|^([A-Z]+) [?:]?=", MAKEFILE, re.M))
MISSING = "Missing parameter"
"""How Typer begins its message where an argument is left out."""
PAGES_WITH = [page for page in PAGES if any(command[0] != "kubectl" for command in [*of_blocks(page), *of_text(page)])]


@pytest.mark.parametrize("page", PAGES_WITH, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_programs_accept_all_commands_of_the_page(page: Path) -> None:
    problems = {" ".join(command): _problem(command) for command in of_blocks(page)}
    mentions = {" ".join(command): _problem(command) for command in of_text(page)}
    problems.update({command: found for command, found in mentions.items() if not found.startswith(MISSING)})
    assert {command: found for command, found in problems.items() if found} == {}


@pytest.mark.parametrize(
    "command",
    [
        "dtjob fly",
        "dtjob submit train.py --workes 2",
        "dtjob wait digits now",
        "dtjob logs --follow",
        "make lnt",
        "make bench BENHC=1",
        "helm install dtjob helm/dt -n x",
        "helm upgrade dtjob helm/dtjob --set kueue.enable=true",
    ],
)
def test_a_wrong_command_is_found(command: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```sh\n{command}\n```\n")
    assert [bool(_problem(found)) for found in of_blocks(page)] == [True]


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


def _problem(command: list[str]) -> str:
    program, *words = command
    return {"dtjob": _of_dtjob, "make": _of_make, "helm": _of_helm}.get(program, lambda _: "")(words)


def _of_dtjob(words: list[str]) -> str:
    if words[0] == "COMMAND" or words[0].startswith("-"):
        return ""
    known = DTJOB.commands.get(words[0])
    if known is None:
        return "no such command"
    if len(words) == 1:  # it names the command
        return ""
    try:
        known.make_context(words[0], ["1" if word.isupper() else word for word in words[1:]])  # JOB, WORKERS
    except Exit:  # --help
        return ""
    except TyperException as error:
        return str(error) or type(error).__name__
    return ""


def _of_make(words: list[str]) -> str:
    names = {name for found in VARIABLES for name in found}
    for word in words:
        variable, equals, _ = word.partition("=")
        if (variable not in names) if equals else (word not in TARGETS):
            return f"no such {'variable' if equals else 'target'}: {word}"
    return ""


def _of_helm(words: list[str]) -> str:
    if words[0] in ("install", "upgrade") and len(words) > 2 and not (ROOT / words[2] / "Chart.yaml").exists():
        return f"no chart: {words[2]}"
    for option, value in pairwise(words):
        if option in ("--set", "--set-string"):
            for each in re.split(r"(?<!\\),(?![^{]*})", value):
                if not _is_value(re.split(r"(?<!\\)\.", each.partition("=")[0])):
                    return f"no such value: {each}"
    return ""


@cache
def _values() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((ROOT / "helm" / "dtjob" / "values.yaml").read_text())
    return values


def _is_value(path: list[str]) -> bool:
    """Whether the chart has this value; below an empty map of the chart, each key is one."""
    found: Any = _values()
    for key in path:
        if found == {}:
            return True
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True
