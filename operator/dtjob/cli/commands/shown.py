# SPDX-License-Identifier: Apache-2.0
"""How --help shows commands: groups, plain names for values, and the usage line. docs/reference/command-line.md too."""

import re
from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand, TyperGroup

_EXAMPLE = re.compile(r"\n\n(?=Examples?:)")
_DETAILS = re.compile(r"\s*\[(?P<parts>(?:[^\[\]]|\[\])+)\]$")
_DEFAULT = "default: "
_NO_WRAPPING = "\n\n\b\n"
"""The mark before lines that the help does not join."""


class Command(TyperCommand):
    """A command whose examples stand on lines of their own."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`[OPTIONS] FILE [-- ARGS…]`."""
        arguments = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        return ["[OPTIONS]", *(str(one.metavar) if one.required else f"[{one.metavar}]" for one in arguments)]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """The text, with the examples as they are written."""
        text, self.help = self.help, _EXAMPLE.sub(_NO_WRAPPING, self.help or "")
        super().format_help_text(ctx, formatter)
        self.help = text

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options, each with what it means."""
        for kind, title in (("argument", "Arguments"), ("option", "Options")):
            if rows := list(meanings(self, ctx, kind)):
                with formatter.section(title):
                    formatter.write_dl(rows)


class Group(TyperGroup):
    """All commands, each under the title that it was given as its panel."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands by title, in the order in which they were added."""
        shown = {name: one for name, one in self.commands.items() if not one.hidden}
        limit = formatter.width - 6 - max(map(len, shown), default=0)
        for title in dict.fromkeys(one.rich_help_panel for one in shown.values()):  # type: ignore[attr-defined]
            rows = [
                (name, one.get_short_help_str(limit))
                for name, one in shown.items()
                if one.rich_help_panel == title  # type: ignore[attr-defined]
            ]
            with formatter.section(str(title)):
                formatter.write_dl(rows)


def meanings(command: Any, context: Any, kind: str) -> Iterator[tuple[str, str]]:
    """Each argument or option of a command as it is written, and what it means."""
    for one in command.get_params(context):
        record = one.get_help_record(context) if one.param_type_name == kind else None
        if record is None:
            continue
        name, meaning = record
        details = _DETAILS.search(meaning)
        parts = details["parts"].split("; ") if details else []
        default = next((part.removeprefix(_DEFAULT).strip("()") for part in parts if part.startswith(_DEFAULT)), None)
        meaning = _DETAILS.sub("", meaning)
        name = one.metavar if kind == "argument" else name.replace("<", "").replace(">", "")
        yield name, meaning if default is None else f"{meaning} Default: {default}."
