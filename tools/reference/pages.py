# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference/ that are made from the code: the API, commands, Events, exit codes and hooks."""

import ast
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer

from dtjob.cli.commands.shown import meanings
from dtjob.cli.main import app
from tools.reference.api_page import page as api
from tools.reference.events import EVENTS
from tools.reference.hooks_page import page as hooks

ROOT = Path(__file__).resolve().parents[2]
EXIT_CODES = ROOT / "trainer_image" / "dtjob_trainer" / "contract" / "exit_codes.py"
HEAD = """# The command line

`make reference` writes this page from the parsers. `dtjob COMMAND --help` prints the same.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | The job failed or waits for you, or something did not happen. `convert` warns, or `doctor` found a problem. |
| 2 | The input is wrong: arguments, a manifest or a kubeconfig. |
| 3 | The API server refused the call, or the job does not allow it: there is none or another one, or it has ended. |
| 4 | The API server could not be reached, or it could not serve the call. |
| 124 | The time of `--timeout` or `--wait` is up. |
| 130 | Ctrl-C |

Commands that wait outlive an API server that does not answer. After some seconds they say so on standard error.
"""
EVENTS_HEAD = """# Events

`make reference` writes this page from the code. [Troubleshooting](../operate/troubleshooting.md#an-event) says what to
do.

The operator writes these Events for a job. `kubectl describe dtjob NAME` and `dtjob events NAME` print them. The pods
have Events of the scheduler and the kubelet too. By default Kubernetes deletes Events after an hour. The conditions of
the job stay.

"""
EXIT_CODES_HEAD = """# Exit codes of a training container

`make reference` writes this page from the code.

With `program` a supervisor runs the program in the container. If the program ends with a code of its own, the container
ends with the same code. The trainer itself uses these codes:

"""
EXIT_CODES_TAIL = """
The supervisor handles 75 itself, so no container ends with it.

If signal n ends the program, the code is 128 + n, as in shells: 137 is SIGKILL, 139 is SIGSEGV, and 134 is SIGABRT.

`status.lastFailure.exitCode` has the code of the last failure, and `kubectl describe pod` that of each pod.
[Failure rules](../jobs/failure-rules.md) decide by these codes. Without `program`, all codes are
those of the image's own program.

[The command line](command-line.md) has the exit codes of `dtjob`.
"""


def events() -> str:
    """The page of all reasons of Events."""
    rows = [f"| `{reason}` | {' or '.join(one.types)} | {one.meaning} |" for reason, one in EVENTS.items()]
    return EVENTS_HEAD + "\n".join(["| reason | type | meaning |", "|---|---|---|", *rows, ""])


def exit_codes() -> str:
    """The page of all exit codes of a training container."""
    rows = [f"| {code} | {meaning} |" for code, meaning in meanings_of_codes(EXIT_CODES.read_text()).items()]
    return EXIT_CODES_HEAD + "\n".join(["| code | meaning |", "|---|---|", *rows, ""]) + EXIT_CODES_TAIL


def meanings_of_codes(source: str) -> dict[int, str]:
    """Each constant number of a module, and the docstring below it."""
    body = ast.parse(source).body
    found = {}
    for constant, below in pairwise(body):
        if isinstance(constant, ast.Assign) and isinstance(below, ast.Expr):
            found[ast.literal_eval(constant.value)] = " ".join(ast.literal_eval(below.value).split())
    return found


def command_line() -> str:
    """The page of all commands."""
    root: Any = typer.main.get_command(app())  # Typer has a click of its own inside
    context = root.context_class(root, info_name="dtjob")
    return HEAD + "".join(
        "\n".join(["", *_command(command, command.context_class(command, parent=context, info_name=name)), ""])
        for name, command in root.commands.items()
        if not command.hidden
    )


def _command(command: Any, context: Any) -> Iterator[str]:
    text, _, examples = (command.help or "").partition("\n\nExample")
    lines = [line.strip() for line in examples.lstrip("s").removeprefix(":").strip().splitlines()]
    yield from (f"## `{context.command_path}`", "", " ".join(text.split()), "")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield from ("```text", f"Usage: {usage}", "", *lines, "```")
    found = [row for kind in ("argument", "option") for row in meanings(command, context, kind)]
    if found := [row for row in found if not row[0].endswith("--help")]:
        yield from ("", "| argument | meaning |", "|---|---|")
        yield from (f"| `{_cell(name)}` | {_cell(said)} |" for name, said in found)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


PAGES: Mapping[Path, Callable[[], str]] = {
    ROOT / "docs" / "reference" / name: page
    for name, page in (
        ("api.md", api),
        ("command-line.md", command_line),
        ("events.md", events),
        ("exit-codes.md", exit_codes),
        ("hooks.md", hooks),
    )
}
"""The files, and what makes each."""
