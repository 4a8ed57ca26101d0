# SPDX-License-Identifier: Apache-2.0
"""What is said of words on the command line that its parser does not take: one line, in the style of all our errors."""

import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any

from typer import TyperException

_ALIKE = 0.7
"""How alike an option must be to be meant, from 0 to 1."""


def said_of(error: TyperException, words: Sequence[str]) -> str:
    """The line without the name of the program. `words`: those of the command line."""
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context is not None else " ".join(["dtjob", *words[:1]])
    if (option := getattr(error, "option_name", None)) and hasattr(error, "possibilities"):
        return _of_option(str(option), context, words)
    if option == "--dry-run":
        return (
            f"{option}: takes no value; it prints the objects and asks no cluster, as kubectl's --dry-run=client does"
        )
    if option and context is None:
        return f"{option}: {'takes no' if 'not take' in error.message else 'needs a'} value; see {path} --help"
    if context is not None and (commands := getattr(context.command, "commands", {})):
        return _of_command(words, commands, path)
    said = error.message.strip().rstrip(".").removeprefix("Value error, ").replace("Input should be", "must be")
    said = said.partition(", unable to parse")[0]
    if (parameter := getattr(error, "param", None)) is not None:
        name = parameter.opts[0] if parameter.param_type_name == "option" else parameter.metavar
        said = f"{name}: {said or 'is missing'}"
    return f"{said}; see {path} --help"


def _of_command(words: Sequence[str], commands: Any, path: str) -> str:
    """What is said of a word that is no command."""
    word = next((one for one in words if not one.startswith("-")), "")
    close = get_close_matches(word, [name for name, one in commands.items() if not one.hidden], 1)
    return f"{word!r} is no command; {f'did you mean {close[0]}?' if close else f'see {path} --help'}"


def _of_option(option: str, context: Any, words: Sequence[str]) -> str:
    """What is said of an option that the command does not have."""
    from dtjob.cli.commands.running import ONLY_IN_A_CLUSTER

    command, path = context.command, context.command_path
    if command.name == "run" and (why := ONLY_IN_A_CLUSTER.get(option)):
        return f"{option}: goes with dtjob submit; {why}"
    known = [name for one in command.params if not one.hidden for name in one.opts]
    close = get_close_matches(option, known, 1, _ALIKE)
    advice = f"did you mean {close[0]}?" if close else f"see {path} --help"
    scripts = [word for word in words if word.endswith(".py")]
    if scripts and command.name in ("run", "submit"):
        at = next((number for number, word in enumerate(words) if word.split("=")[0] == option), len(words) - 1)
        after = takewhile(lambda word: word.split("=")[0] not in known, words[at:])
        theirs = shlex.join([scripts[0], "--", *(word for word in after if word != scripts[0])])
        advice = f"{advice} Arguments" if close else "arguments"
        advice += f" of the script go after --: {path} {theirs}"
    return f"{option}: is no option of {path}; {advice}"
