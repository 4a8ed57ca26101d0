# SPDX-License-Identifier: Apache-2.0
"""Fields of a manifest that are wrong by themselves, and what is left to look at without them."""

import copy
import re
from collections.abc import Collection, Iterable
from typing import Any

from dtjob.crd.answers.field_errors import UNKNOWN, Problem
from dtjob.crd.rule import Path, Value

_MEANT = re.compile(r"(?:did you mean|write) ([A-Za-z]+)")
"""The field that the message about an unknown one names first."""


class Faults:
    """The fields that are wrong, and what is not known because of them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self._wrong: list[Path] = []
        self._incomplete: list[Path] = []
        """Blocks with an unknown field, which may stand for one of the block: a rule that misses that one is wrong."""
        for problem in problems:
            path = _parts(problem.field)
            self._wrong.append(path)
            if path == ("metadata", "generateName"):
                self._wrong.append(("metadata", "name"))  # which the API server makes of it
            if problem.message.startswith(UNKNOWN):
                meant = _MEANT.search(problem.message)
                self._wrong += [("spec", meant[1])] if meant else []
                self._incomplete += [path[:-1]] if len(path) > len(("spec", "field")) else []

    def spoil(self, reads: Iterable[Path]) -> bool:
        """Whether a rule that reads these paths cannot be looked at."""
        return any(
            any(meet(read, path) for path in self._wrong)
            or any(meet(read, block) and len(read) <= len(block) + 1 for block in self._incomplete)
            for read in reads
        )


NONE = Faults(())
"""Nothing is wrong."""


def meet(one: Path, other: Path) -> bool:
    """Whether one of these paths is at, above or below the other. `*` is any name."""
    return all(a == b or "*" in (a, b) for a, b in zip(map(_plain, one), map(_plain, other), strict=False))


def others(found: Iterable[Problem], known: Collection[Problem]) -> list[Problem]:
    """The problems in `found` whose fields no problem in `known` is about."""
    wrong = [_parts(problem.field) for problem in known]
    return [problem for problem in found if not any(meet(_parts(problem.field), path) for path in wrong)]


def without(manifest: Value, problems: Iterable[Problem]) -> Any:
    """The manifest without the fields that are wrong. A list goes as a whole."""
    left = copy.deepcopy(manifest)
    for problem in problems:
        _remove(left, problem.field)
    return left


def _parts(field: str) -> Path:
    """The names of a dotted path, up to a list."""
    return tuple(field.partition("[")[0].split("."))


def _plain(name: str) -> str:
    return name.removesuffix("[]")


def _remove(value: Any, field: str) -> None:
    """Remove what is at this dotted path, whose names may have dots themselves."""
    if not isinstance(value, dict):
        return
    for name in value:
        rest = field.removeprefix(str(name))
        if field == str(name) or (rest != field and rest.startswith("[")):
            del value[name]
            return
        if rest != field and rest.startswith("."):
            _remove(value[name], rest[1:])
            return
