# SPDX-License-Identifier: Apache-2.0
"""The numbers beside TFJob's in README.md are those of one result of benchmarks/results/."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RESULT = ROOT / "benchmarks" / "results" / "recovery.md"
MEASURED = {
    "share of time spent on useful steps, %": "goodput, % of the time",
    "seconds from a worker's kill to the next new step": "seconds from a worker's kill to the next new step",
    "seconds from the chief's kill to the next new step": "seconds from the chief's kill to the next new step",
    "seconds from apply to the first checkpoint": "seconds from apply to the first checkpoint",
}
"""By the row in README.md: the row of the result."""


def rows(page: str) -> dict[str, list[str]]:
    """The cells after the first one, by the first one."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line]
    return {first: rest for first, *rest in found}


@pytest.mark.parametrize("row", MEASURED)
def test_a_row_of_the_readme_is_what_was_measured(row: str) -> None:
    table = rows(RESULT.read_text())
    assert table[""][:2] == ["dtjob", "tfjob"]
    assert rows(README)[row] == table[MEASURED[row]][:2]


def test_each_row_of_the_readme_is_checked() -> None:
    table = README.split("| one process killed every minute |", 1)[1].split("\n\n", 1)[0]
    assert {line.split("|")[1].strip() for line in table.splitlines()[2:]} == set(MEASURED)


def test_the_readme_says_when_and_with_which_code_the_numbers_were_measured() -> None:
    measured = re.search(r"rounds on (\S+) .*; commit (\w+),", RESULT.read_text())
    assert measured is not None
    assert f"on {measured[1]} with commit {measured[2]}" in README
