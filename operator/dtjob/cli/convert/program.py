# SPDX-License-Identifier: Apache-2.0
"""`--program`: the command of a TFJob's containers as the program of dtjob's trainer."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dtjob.cli.convert.fields import Fields

_PYTHON = re.compile(r"(?:.*/)?python(?:\d+(?:\.\d+)*)?")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da)?sh")
_FILE = re.compile(r"[^ $]+\.py")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_OF_A_SHELL = set("|&;<>()`\\*?[]{}~#!\n$")
"""Characters that only a shell understands."""


@dataclass(frozen=True)
class Command:
    """What runs: a Python file or a module, and its arguments."""

    entrypoint: str
    arguments: tuple[str, ...]

    def as_program(self) -> Fields:
        """The block `program`."""
        return {"entrypoint": self.entrypoint, **({"args": list(self.arguments)} if self.arguments else {})}


def python_command(words: Sequence[Any]) -> Command | None:
    """The program of this command, None if it is not `python script.py` or `python -m module`."""
    texts = [str(word) for word in words]
    if len(texts) == 3 and _SHELL.fullmatch(texts[0]) and texts[1] in ("-c", "-ec", "-lc"):
        line = texts[2].strip().removeprefix("exec ")
        texts = [] if set(line) & _OF_A_SHELL else _split(line)
    if not texts or not _PYTHON.fullmatch(texts[0]):
        return None
    rest = texts[1:]
    while rest and rest[0] == "-u":
        rest = rest[1:]
    if len(rest) >= 2 and rest[0] == "-m" and _MODULE.fullmatch(rest[1]):
        return Command(rest[1], tuple(rest[2:]))
    if rest and _FILE.fullmatch(rest[0]) and not rest[0].startswith("-"):
        return Command(rest[0], tuple(rest[1:]))
    return None


def common_program(commands: Sequence[Sequence[Any]]) -> tuple[Command | None, str]:
    """The program that all these commands run, or None and the reason."""
    found = [python_command(words) for words in commands]
    if any(one is None for one in found):
        return None, "a container does not run `python script.py` or `python -m module`"
    if len(set(found)) > 1:
        return None, "the roles run different commands, and a dtjob has one program"
    return found[0], ""


def _split(line: str) -> list[str]:
    """The words of a line, none where its quotes do not match."""
    try:
        return shlex.split(line)
    except ValueError:
        return []
