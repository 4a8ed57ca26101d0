# SPDX-License-Identifier: Apache-2.0
"""The numbers beside TFJob's in README.md are those of benchmarks/results/."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEASURED = {
    "goodput: time in steps that count, with one killed process a minute": ("recovery", "goodput, % of the time", 1),
    "seconds from a killed worker to the next new step": (
        "recovery",
        "seconds from a worker's kill to the next new step",
        1,
    ),
    "seconds until the pods of a 1,000-worker job exist": ("big_job", "seconds until every pod exists", 1),
    "etcd storage of that job": ("big_job", "bytes in etcd, the job running", 1_000_000),
    "operator memory with 1,000 running jobs of 10 pods": ("standing_load", "peak memory, MB", 1),
}
"""By the row in README.md: the result, its row, and how many of its units are one of README's."""


def rows(page: Path) -> dict[str, list[str]]:
    """The cells after the first one, by the first one."""
    found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.read_text().splitlines() if "|" in line
    ]
    return {first: rest for first, *rest in found}


def number(cell: str) -> float:
    """The number with which the cell begins."""
    found = re.match(r"[\d.,]+", cell)
    assert found is not None, cell
    return float(found[0].replace(",", ""))


@pytest.mark.parametrize("row", MEASURED)
def test_a_row_of_the_readme_is_what_was_measured(row: str) -> None:
    result, name, unit = MEASURED[row]
    table = rows(ROOT / "benchmarks" / "results" / f"{result}.md")
    heading = table[""][:2]
    assert heading[0] == "dtjob"
    assert heading[1] in ("tfjob", "tfjob-tuned")
    for shown, measured in zip(rows(ROOT / "README.md")[row], table[name][:2], strict=True):
        digits = len(shown.split()[0].partition(".")[2])
        assert number(shown) == round(number(measured) / unit, digits)


def test_each_row_of_the_readme_is_checked() -> None:
    table = (ROOT / "README.md").read_text().split("| measured on two cores |", 1)[1].split("\n\n", 1)[0]
    assert {line.split("|")[1].strip() for line in table.splitlines()[2:]} == set(MEASURED)
