# SPDX-License-Identifier: Apache-2.0
"""A function as the program of a job: its source in a file, and a call."""

import inspect
import json
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from dtjob.bad_input import BadInput


def as_script(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """A script that calls the function with these arguments. Raises BadInput if it cannot stand alone."""
    name = getattr(function, "__name__", "")
    if not inspect.isfunction(function) or not name.isidentifier():
        raise BadInput("train takes a function that is defined with def")
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        raise BadInput(f"{name}: uses {names} of the function around it; give them as arguments")
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        raise BadInput(f"{name}: its source cannot be read; define it in a file or in a cell") from None
    try:
        text = json.dumps(dict(arguments))
    except TypeError as error:
        raise BadInput(f"{name}: arguments must be numbers, texts, lists and mappings: {error}") from None
    call = f"{name}(**json.loads({text!r}))"
    return f'import json\n\n{source}\n\nif __name__ == "__main__":\n    {call}\n'
