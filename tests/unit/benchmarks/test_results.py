# SPDX-License-Identifier: Apache-2.0
"""Tables and plots in benchmarks/results/ are made from the numbers beside them, as their scenarios make them now."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.operators import report
from benchmarks.operators.rounds import Scenario

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
FOUND = {file.stem: json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))}
MEASURED = {name: result for name, result in FOUND.items() if "rounds" in result}
every = pytest.mark.parametrize("name", MEASURED)


def scenario(result: dict[str, Any]) -> Scenario[Any, Any]:
    """The scenario that has measured this."""
    found = re.search(r"-m (\S+) ?(\w*)", result["command"])
    assert found is not None
    module = importlib.import_module(found[1])
    made: Scenario[Any, Any] = module.SCENARIO if hasattr(module, "SCENARIO") else module.scenario(found[2])
    return made


@every
def test_a_table_is_that_of_its_numbers(name: str) -> None:
    made = scenario(MEASURED[name])
    assert (RESULTS / f"{name}.md").read_text() == report.table(MEASURED[name], made.units, made.goals)


@pytest.mark.parametrize("name", list(MEASURED)[::4])  # a plot takes a second, and one function draws them all
def test_a_plot_is_that_of_its_numbers(name: str, tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    report.plot(MEASURED[name], scenario(MEASURED[name]).units, tmp_path / "plot.png")
    drawn, kept = (image.imread(path) for path in (tmp_path / "plot.png", RESULTS / f"{name}.png"))
    assert np.array_equal(drawn, kept)


def test_the_index_is_that_of_all_results() -> None:
    assert (RESULTS / "README.md").read_text() == report.index(RESULTS)


def test_each_picture_of_the_repository_is_drawn_by_a_script() -> None:
    """`test_recovery_picture.py` compares the one of kills. Each of the others has a make target."""
    root = RESULTS.parents[1]
    kinds = ("*.png", "*.svg", "*.jpg", "*.gif")
    below = ("docs", "benchmarks", "helm", "examples")
    pictures = {str(file.relative_to(root)) for top in below for kind in kinds for file in (root / top).rglob(kind)}
    drawn = {f"benchmarks/results/{name}.png" for name in MEASURED} | {
        f"docs/images/{name}"
        for name in (
            *("recovery.svg", "run.svg"),  # make picture draws the one of the terminal
            *("page-list.png", "page-job.png", "tensorboard.png", "tensorboard-profile.png"),  # make browser
            *("dtjob-jobs.png", "dtjob-operator.png"),  # make dashboards
        )
    }
    assert pictures == drawn
