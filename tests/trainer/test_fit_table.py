# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/reference/fit.md are true: every cell is trained again, and must say what the page says of it."""

import ast
import importlib.util
from pathlib import Path

import pytest

from tests.trainer.support import fit_table
from tests.trainer.support.fit_table import Cell

AFRESH = "docs/reference/fit.md is not what the trainer does; write it anew with `make fit-table`"
OFTEN = ("argument_verbose", "argument_validation_split", "argument_initial_epoch", "argument_validation_freq")
"""The cases that `make test` trains, in two tasks."""


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("package", "strategy"), [(package, name) for package, names in fit_table.STRATEGIES.items() for name in names]
)
def test_every_cell_says_what_training_comes_to(tmp_path: Path, package: str, strategy: str) -> None:
    page = fit_table.parse(fit_table.PAGE.read_text())
    found = fit_table.run(tmp_path, strategy, package)
    assert found == {case.name: page[package, case.name].get(strategy) for case in fit_table.cases(package)}, AFRESH


@pytest.mark.slow
def test_arguments_come_to_the_same_in_two_tasks(tmp_path: Path) -> None:
    cells = fit_table.run(tmp_path, "MultiWorkerMirrored", "keras", OFTEN)
    assert cells == dict.fromkeys(OFTEN, Cell("same"))


def test_the_page_is_wholly_made() -> None:
    """Nothing was written by hand between the marks, and no case, strategy or cell is missing."""
    page = fit_table.PAGE.read_text()
    table = fit_table.parse(page)
    for package, strategies in fit_table.STRATEGIES.items():
        for case in fit_table.cases(package):
            assert tuple(table.get((package, case.name), ())) == strategies, f"{case.name}: {AFRESH}"
    assert fit_table.render(table) in page, AFRESH


def test_every_argument_of_keras_has_its_row() -> None:
    """Of tf_keras's, whose first ones are Keras 3's: tests/unit/trainer/loops/test_fit_arguments.py sees to that."""
    spec = importlib.util.find_spec("tf_keras")
    assert spec is not None
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0], "src", "engine", "training.py")
    (fit,) = (n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.FunctionDef) and n.name == "fit")
    shown = {argument for case in fit_table.cases("keras") for argument in case.subjects}
    assert shown == {each.arg for each in fit.args.args} - {"self"}


def test_a_table_is_read_as_it_was_written() -> None:
    long = "argument: " + "cannot be right here, write (x, y) instead; " * 9 + "end"
    kinds = [Cell("same"), Cell("refused", long), Cell("no effect", "in 1. another way"), Cell("beyond Keras")]
    table = {
        (package, case.name): {name: kinds[(row + column) % 4] for column, name in enumerate(names)}
        for package, names in fit_table.STRATEGIES.items()
        for row, case in enumerate(fit_table.cases(package))
    }
    assert fit_table.parse(f"before\n{fit_table.render(table)}\nafter 1. x") == table
