# SPDX-License-Identifier: Apache-2.0
"""Bounds of a report: tenants write it, and every status must have room for it.

A metric that is a list (a confusion matrix of 300 × 300) would make the status larger than the API server takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtjob.plan.seen.report_types import is_number, of_the_contract

MOST_NUMBERS = 64
MOST_TEXTS = 32
LONGEST_TEXT = 256
"""Characters of a text, and of a name."""
DEEPEST = 4
"""Blocks within blocks."""


def bounded(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report without what a status cannot hold: lists, NaN and infinities (a job that diverges reports them; they
    are no JSON), numbers beyond 64 bits, and what is too many, too long or too deep.

    Single values go before blocks and small blocks before large ones, so that metrics never push out a step.
    """
    return _Budget().block(report, DEEPEST)


def readable(report: Mapping[str, Any]) -> dict[str, Any]:
    """The bounded report without values of another type than docs/contract.md says; the API server would refuse them
    by the schema of the status."""
    return of_the_contract(bounded(report))


class _Budget:
    """How much of one report is still to be had."""

    def __init__(self) -> None:
        self._numbers, self._texts = MOST_NUMBERS, MOST_TEXTS

    def block(self, block: Mapping[str, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for name, value in sorted(block.items(), key=lambda item: _size(item[1])):
            if len(name) > LONGEST_TEXT:
                continue
            if isinstance(value, Mapping):
                if depth > 1 and (inner := self.block(value, depth - 1)):
                    kept[_text(name)] = inner
            elif self._takes(value):
                kept[_text(name)] = _text(value) if isinstance(value, str) else value
        return {name: kept[name] for name in map(_text, block) if name in kept}

    def _takes(self, value: Any) -> bool:
        if isinstance(value, str):
            self._texts -= 1
            return self._texts >= 0
        if not isinstance(value, bool) and not is_number(value):
            return False
        self._numbers -= 1
        return self._numbers >= 0


def _size(value: Any) -> int:
    return len(value) + 1 if isinstance(value, Mapping) else 0


def _text(text: str) -> str:
    """At most LONGEST_TEXT characters, without halves of characters, which UTF-8 cannot write."""
    text = text.encode(errors="replace").decode()
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
