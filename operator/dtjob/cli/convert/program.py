# SPDX-License-Identifier: Apache-2.0
"""`--program`: the command of a TFJob's containers as the program of dtjob's trainer."""

import re
import shlex
from collections.abc import Sequence

from dtjob.cli.convert.reading import Fields

_PYTHON = re.compile(r"(?:.*/)?python(?:\d+(?:\.\d+)*)?")
_SHELL = re.compile(r"(?:.*/)?(?:ba|da)?sh")
_FILE = re.compile(r"[^ $-][^ $]*\.py")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_OF_A_SHELL = set("|&;<>()`\\*?[]{}~#!\n$")
"""Characters that only a shell understands."""


def common_program(containers: Sequence[Fields]) -> tuple[Fields | None, str]:
    """The block `program` of what all these containers run, or None and the reason."""
    found = [python_command([*one.get("command", ()), *one.get("args", ())]) for one in containers]
    if None in found:
        return None, "a container does not run `python script.py` or `python -m module`"
    if any(one != found[0] for one in found):
        return None, "the roles run different commands, and a dtjob has one program"
    return found[0], ""


def python_command(words: Sequence[str]) -> Fields | None:
    """The block `program` of this command, None if it is not `python script.py` or `python -m module`."""
    if len(words) == 3 and _SHELL.fullmatch(words[0]) and words[1] in ("-c", "-ec", "-lc"):
        line = words[2].strip().removeprefix("exec ")
        words = [] if set(line) & _OF_A_SHELL else _split(line)
    if not words or not _PYTHON.fullmatch(words[0]):
        return None
    rest = list(words[1:])
    while rest[:1] == ["-u"]:
        del rest[0]
    is_module = rest[:1] == ["-m"] and len(rest) > 1
    entrypoint, *arguments = rest[is_module:] or [""]
    if not (_MODULE if is_module else _FILE).fullmatch(entrypoint):
        return None
    return {"entrypoint": entrypoint, **({"args": arguments} if arguments else {})}


def _split(line: str) -> list[str]:
    """The words of a line, none where its quotes do not match."""
    try:
        return shlex.split(line)
    except ValueError:
        return []
