# SPDX-License-Identifier: Apache-2.0
"""The table of docs/reference/strategies.md is true: every cell is run again, and must say what the page says of it."""

from pathlib import Path

import pytest

from tests.trainer.support import strategy_table
from tests.trainer.support.strategy_table import Cell, Row

AFRESH = "docs/reference/strategies.md is not what the trainer does; write it anew with `make table`"
OFTEN = ("MultiWorkerMirrored",)
"""Those that `make test` runs: each loop with each package."""


@pytest.fixture(scope="module")
def undistributed(tmp_path_factory: pytest.TempPathFactory) -> Row:
    """With Keras's own Model.fit."""
    return strategy_table.run(tmp_path_factory.mktemp("undistributed"), "Default", DTJOB_INTEGRATION="None")


@pytest.mark.parametrize(
    "strategy",
    [name if name in OFTEN else pytest.param(name, marks=pytest.mark.slow) for name in strategy_table.CLUSTERS],
)
def test_every_cell_works_or_names_its_reason(tmp_path: Path, undistributed: Row, strategy: str) -> None:
    row = strategy_table.run(tmp_path, strategy)
    strategy_table.check(strategy, row, undistributed)
    cells = {place: cell for place, (cell, _) in row.items()}
    assert all(cell.works or cell.reason for cell in cells.values()), cells
    assert cells == strategy_table.parse(strategy_table.PAGE.read_text())[strategy], AFRESH


def test_the_page_is_wholly_made() -> None:
    """Nothing was written by hand between the marks, and no strategy or cell is missing."""
    page = strategy_table.PAGE.read_text()
    table = strategy_table.parse(page)
    assert list(table) == list(strategy_table.CLUSTERS), AFRESH
    assert strategy_table.render(table) in page, AFRESH


def test_a_table_is_read_as_it_was_written() -> None:
    cells = {(loop, package): Cell(True) for loop in strategy_table.LOOPS for package in strategy_table.PACKAGES}
    long = "argument: " + "cannot be right here, write (x, y) instead; " * 9 + "end"
    first = cells | {("dt.fit", "keras"): Cell(False, long), ("dt.train", "tf_keras"): Cell(True, "in 1. another way")}
    table = {"One": first, "Two": cells | {("Model.fit", "keras"): Cell(False, long)}}
    written = strategy_table.render(table)
    assert strategy_table.parse(f"before\n{written}\nafter 1. x") == table
    assert max(map(len, written.splitlines())) <= 120
