# SPDX-License-Identifier: Apache-2.0
"""What Keras's own training loop asks of model, optimizer and callbacks, read from its source."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

Asked = tuple[str, str]
"""Whom (model, optimizer, callbacks), and the name of the method or attribute."""


def asked_for(package: str, files: Sequence[str], roots: Sequence[str], owners: Mapping[str, str]) -> set[Asked]:
    """All that functions of `files` (below the package) ask for which are reached from those named `roots`.

    - owners: an expression as the source has it, such as "self.optimizer", to whom it is, where that is of interest.
      What is asked of "self" is followed into the functions of that name, whichever class has them.
    """
    spec = find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    functions: dict[str, list[ast.FunctionDef]] = {}
    for file in files:
        for node in ast.walk(ast.parse(Path(spec.submodule_search_locations[0], file).read_text())):
            if isinstance(node, ast.FunctionDef):
                functions.setdefault(node.name, []).append(node)
    found: set[Asked] = set()
    reached, waiting = set(roots), list(roots)
    while waiting:
        for function in functions[waiting.pop()]:
            for expression, name in _attributes(function):
                if owner := owners.get(expression):
                    found.add((owner, name))
                if expression == "self" and name in functions and name not in reached:
                    reached.add(name)
                    waiting.append(name)
    return found


def _attributes(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Every `expression.name` in a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node.value), node.attr
