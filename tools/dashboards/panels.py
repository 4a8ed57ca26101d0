# SPDX-License-Identifier: Apache-2.0
"""The parts of a dashboard. `grafana.py` and `draw.py` show them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["stat", "timeseries", "state-timeline", "table"]


@dataclass(frozen=True)
class Query:
    """An expression of PromQL with the variables of its dashboard, and what its series are called."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One panel. `unit` is a unit of Grafana; `about` is the help text at its title."""

    title: str
    queries: tuple[Query, ...]
    about: str
    kind: Kind = "timeseries"
    unit: str = "short"
    width: int = 8
    """Of 24 columns."""
    stacked: bool = False
    from_zero: bool = True
    """Whether the axis begins at 0."""
    steps: tuple[tuple[float, str], ...] = ()
    """Colours of a stat from these values on; without them it is blue."""

    @property
    def height(self) -> int:
        """Rows of the grid."""
        return 4 if self.kind == "stat" else 8


@dataclass(frozen=True)
class Row:
    """Panels under a title."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Variable:
    """A choice at the top of the dashboard: the values of a label of a metric."""

    name: str
    label: str
    query: str


@dataclass(frozen=True)
class Dashboard:
    """A dashboard. `uid` is its name in addresses and of its file."""

    uid: str
    title: str
    about: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    def panels(self) -> Iterator[Panel]:
        """All panels, in their order."""
        for row in self.rows:
            yield from row.panels


GOOD_AT_ZERO = ((0.0, "green"), (1.0, "orange"))
"""Nothing is wrong at 0."""
