# SPDX-License-Identifier: Apache-2.0
"""CEL in Python: a rule in the words of the API server, asked of a value without one.

It reads the part of CEL that the rules are written in. A rule is translated into an expression of Python, which is
compiled once. A field that is missing is an error, as in CEL: KeyError.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import CodeType
from typing import Any

from dtjob.api.quantity import is_quantity, parse

_TOKEN = re.compile(r"""\d+|'(?:[^'\\]|\\.)*'|\w+|\|\||&&|[=!<>]=|\S""")
_OPERATORS = {
    "||": (1, "or"),
    "&&": (2, "and"),
    **{name: (3, name) for name in ("==", "!=", "<=", ">=", "<", ">", "in")},
    "+": (4, "+"),
    "-": (4, "-"),
    "*": (5, "*"),
}
"""How close each operator binds, and what it is in Python."""
_MACROS = {
    "all": "all({body} for {name} in {of})",
    "exists": "any({body} for {name} in {of})",
    "exists_one": "(sum(bool({body}) for {name} in {of}) == 1)",
    "filter": "[{name} for {name} in {of} if {body}]",
    "map": "[{body} for {name} in {of}]",
}


def _matches(text: str, pattern: str) -> bool:
    """As RE2 has it: `$` is the end of the text, and not a line break before it."""
    return re.search(re.sub(r"\$$", r"\\Z", pattern), text) is not None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "size": len,
    "string": str,
    "type": type,
    "matches": _matches,
    "startsWith": str.startswith,
    "contains": str.__contains__,
    "split": str.split,
    "isQuantity": is_quantity,
    "quantity": parse,
    "compareTo": lambda one, other: (one > other) - (one < other),
}
_NAMES = {"__builtins__": {"all": all, "any": any, "sum": sum, "bool": bool, "int": int}, **_FUNCTIONS}


def holds(cel: str, variables: Mapping[str, Any]) -> bool:
    """Whether the rule holds with these values of its variables, such as `self`."""
    return bool(eval(_compiled(cel), {**_NAMES, **variables}))  # a rule is text of ours


@cache
def _compiled(cel: str) -> CodeType:
    return compile(python_of(cel), cel, "eval")


def python_of(cel: str) -> str:
    """The expression of Python that says the same. Raises ValueError for what is not read here."""
    reader = _Reader(cel)
    found = reader.expression()
    reader.expect("")
    return found


class _Reader:
    """The tokens of an expression, read from left to right."""

    def __init__(self, cel: str) -> None:
        self._cel, self._at = cel, 0
        self._tokens: list[str] = [*_TOKEN.findall(cel), ""]

    def expression(self) -> str:
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        then = self.expression()
        self.expect(":")
        return f"({then} if {condition} else {self.expression()})"

    def expect(self, token: str) -> None:
        if not self._take(token):
            raise ValueError(f"no {token!r} at {self._tokens[self._at :]} of {self._cel}")

    def _take(self, token: str) -> bool:
        found = self._tokens[self._at] == token
        self._at += found
        return found

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _binary(self, least: int) -> str:
        left = f"(not {self._unary()})" if self._take("!") else self._unary()
        while (found := _OPERATORS.get(self._tokens[self._at])) and found[0] >= least:
            self._at += 1
            left = f"({left} {found[1]} {self._binary(found[0] + 1)})"
        return left

    def _unary(self) -> str:
        token = self._next()
        if token == "(":
            found = self.expression()
            self.expect(")")
        elif token == "[":
            found = f"[{self._listed(']')}]"
        elif token == "has":
            self.expect("(")
            block, _, field = self._listed(")").removesuffix("]").rpartition("[")
            found = f"({field} in {block})"
        elif self._take("("):
            found = f"{token}({self._listed(')')})"
        else:
            found = {"true": "True", "false": "False"}.get(token, token)
        return self._of(found)

    def _of(self, found: str) -> str:
        """Fields, items and methods of what was read."""
        while True:
            if self._take("["):
                found = f"{found}[{self._listed(']')}]"
            elif not self._take("."):
                return found
            elif self._tokens[self._at + 1] != "(":
                found = f"{found}[{self._next()!r}]"
            else:
                name = self._next()
                self.expect("(")
                found = self._macro(name, found) if name in _MACROS else f"{name}({found}, {self._listed(')')})"

    def _macro(self, macro: str, of: str) -> str:
        name = self._next()
        self.expect(",")
        return _MACROS[macro].format(name=name, of=of, body=self._listed(")"))

    def _listed(self, end: str) -> str:
        """Expressions with commas between them, up to this token."""
        parts: list[str] = []
        while not self._take(end):
            if parts:
                self.expect(",")
            parts.append(self.expression())
        return ", ".join(parts)
