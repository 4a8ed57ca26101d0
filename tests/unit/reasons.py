# SPDX-License-Identifier: Apache-2.0
"""The reasons that the operator's code gives to phases, conditions and events, found in its syntax trees."""

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPERATOR = Path(__file__).parents[2] / "operator"


class NotNamedHere(Exception):
    """What an argument is cannot be told from the code around it."""


@dataclass(frozen=True)
class Call:
    """A call of one of the functions that were asked for."""

    callee: str
    place: str
    node: ast.Call
    function: ast.AST
    names: dict[str, Any]

    def has(self, position: int | str) -> bool:
        """Whether it is called with an argument at this position, or of this name."""
        if isinstance(position, str):
            return any(one.arg == position for one in self.node.keywords)
        return len(self.node.args) > position or any(isinstance(one, ast.Starred) for one in self.node.args)

    def values(self, position: int | str) -> set[str]:
        """What an argument may be: each branch of a condition, each value of a local variable.

        Raises NotNamedHere if it is a parameter or comes from an object.
        """
        if isinstance(position, str):
            return set(self._values(next(one.value for one in self.node.keywords if one.arg == position)))
        for one in self.node.args[: position + 1]:
            if isinstance(one, ast.Starred):
                raise NotNamedHere(f"{self.place}: {ast.unparse(one)}")
        return set(self._values(self.node.args[position]))

    def _values(self, node: ast.expr) -> Iterator[str]:
        if isinstance(node, ast.IfExp):
            yield from self._values(node.body)
            yield from self._values(node.orelse)
            return
        try:
            yield str(eval(ast.unparse(node), self.names))
        except (NameError, AttributeError) as error:
            assigned = list(self._assigned(ast.unparse(node)))
            if not assigned:
                raise NotNamedHere(f"{self.place}: {ast.unparse(node)}") from error
            for one in assigned:
                yield from self._values(one)

    def _assigned(self, name: str) -> Iterator[ast.expr]:
        """What is assigned to a local variable of this name."""
        for node in ast.walk(self.function):
            if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [name]:
                yield node.value
            if isinstance(node, ast.For) and ast.unparse(node.target) == name and isinstance(node.iter, ast.Tuple):
                yield from node.iter.elts


def calls(*callees: str) -> Iterator[Call]:
    """Each call of a function or class of these names, or of a method such as `draft.add_event`, in the operator."""
    for file in sorted((OPERATOR / "dtjob").rglob("*.py")):
        text = file.read_text()
        if not any(f"{callee}(" in text for callee in callees):
            continue
        module = ".".join(file.relative_to(OPERATOR).with_suffix("").parts)
        for function, node in _with_function(ast.parse(text)):
            if isinstance(node, ast.Call) and (callee := ast.unparse(node.func)) in callees:
                yield Call(callee, file.name, node, function, vars(importlib.import_module(module)))


def _with_function(tree: ast.AST, function: ast.AST | None = None) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Each node with the function that it is in."""
    for node in ast.iter_child_nodes(tree):
        within = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        yield within or tree, node
        yield from _with_function(node, within)
