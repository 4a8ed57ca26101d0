# SPDX-License-Identifier: Apache-2.0
"""docs/contribute/faults.md names checks and tests that are there."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "contribute" / "faults.md").read_text()
IN_SIMULATION = re.findall(r"^\| [a-z-]+ \| .* \| `([\w/.]+)`: `(\w+)` \|$", PAGE, re.M)
IN_CRASHES = [
    (file, name)
    for names, file in re.findall(r"\| (`.+`) in `(\w+\.py)` \|$", PAGE, re.M)
    for name in re.findall(r"`(?:\w+\.)?(\w+)`", names)
]


def test_each_check_that_the_page_names_is_in_its_file() -> None:
    named = [
        *(("unit/operator/simulation", *row) for row in IN_SIMULATION),
        *(("cluster/crashes", *row) for row in IN_CRASHES),
    ]
    assert min(len(IN_SIMULATION) - 40, len(IN_CRASHES)) > 0
    assert [row for row in named if f"def {row[2]}(" not in (TESTS / row[0] / row[1]).read_text()] == []


def test_the_tests_of_foreign_input_are_those_of_make_fuzz() -> None:
    section = PAGE.partition("\n## Foreign input\n")[2].partition("\n## ")[0]
    run = (TESTS.parent / "Makefile").read_text().partition("\nFUZZED :=")[2].partition("\nfuzz:")[0]
    named = re.findall(r"\| `(tests/[\w/]+\.py)` \|$", section, re.M)
    assert named
    assert sorted(named) == sorted(re.findall(r"tests/[\w/]+\.py", run))


def test_each_test_that_the_page_names_is_there() -> None:
    paths = re.findall(r"`(tests/[\w/.]+)`", PAGE)
    assert [path for path in paths if not (TESTS.parent / path).exists()] == []
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    defined = {name for file in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", file.read_text())}
    assert named
    assert named - defined == set()
