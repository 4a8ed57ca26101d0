# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference/ that are made from the code, beside api.md (`make crd`): the command line.

python -m tools.reference
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from dtjob.cli.main import app

ROOT = Path(__file__).resolve().parents[1]
COMMAND_LINE = ROOT / "docs" / "reference" / "command-line.md"
HEAD = """# The command line

`make reference` writes this page from the parsers. `dtjob COMMAND --help` prints the same.

Exit codes: 0 means success, 1 a job that failed, or warnings of `convert`. 2 means wrong arguments, a wrong manifest,
or that no cluster can be reached.
"""


def command_line() -> str:
    """The page of all commands."""
    root: Any = typer.main.get_command(app)  # Typer has a click of its own inside
    context = root.context_class(root, info_name="dtjob")
    return HEAD + "".join(
        "\n".join(["", *_command(command, command.context_class(command, parent=context, info_name=name)), ""])
        for name, command in root.commands.items()
        if not command.hidden
    )


def _command(command: Any, context: Any) -> Iterator[str]:
    yield f"## `{context.command_path}`"
    yield ""
    yield " ".join((command.help or "").split())
    records = [parameter.get_help_record(context) for parameter in command.params if parameter.name != "help"]
    if found := [record for record in records if record]:
        yield from ("", "| argument | meaning |", "|---|---|")
        yield from (f"| `{_cell(name)}` | {_cell(said)} |" for name, said in found)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> None:
    """Write the pages."""
    COMMAND_LINE.write_text(command_line())


if __name__ == "__main__":
    main()
