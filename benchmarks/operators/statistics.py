# SPDX-License-Identifier: Apache-2.0
"""Numbers of rounds brought together: medians, their spread, ratios of sides. Pure."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Numbers = Mapping[str, float]
"""What one side measured in one round, by the number's name."""


@dataclass(frozen=True)
class Spread:
    """The median of the rounds, and the least and the most of them."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Goal:
    """That a number, or its ratio to another side's, is at least or at most so much. `of` None: the number itself."""

    number: str
    side: str
    of: str | None
    bound: Literal["at least", "at most"]
    value: float

    def __str__(self) -> str:
        """In words."""
        number = f"{self.number} of {self.side}"
        return f"{number} {self.bound} {self.value:g}{f' of {self.of}' if self.of else ''}"

    def holds(self, found: float) -> bool:
        """Whether the number that was found is as it should be."""
        return found >= self.value if self.bound == "at least" else found <= self.value


def spread(values: Iterable[float]) -> Spread:
    """Of at least one value."""
    values = list(values)
    return Spread(statistics.median(values), min(values), max(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of the values that so large a share of them does not exceed; of at least one value."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Of the same round each, as what the machine does besides meets both; those of a round without the other are left
    out, as are those by zero."""
    return [one / other for one, other in zip(ours, theirs, strict=False) if other]


def of_side(rounds: Iterable[Mapping[str, Numbers]], side: str, number: str) -> list[float]:
    """A number of one side, round by round. A round is numbers by side."""
    return [one[side][number] for one in rounds if number in one.get(side, {})]


def found_for(goal: Goal, rounds: Sequence[Mapping[str, Numbers]]) -> Spread | None:
    """What the rounds say of the number that a goal is about; None where they do not have it."""
    if goal.of is None:
        values = of_side(rounds, goal.side, goal.number)
    else:
        both = [one for one in rounds if all(goal.number in one.get(side, {}) for side in (goal.side, goal.of) if side)]
        values = ratios(of_side(both, goal.side, goal.number), of_side(both, goal.of, goal.number))
    return spread(values) if values else None
