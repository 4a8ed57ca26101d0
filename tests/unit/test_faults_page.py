# SPDX-License-Identifier: Apache-2.0
"""docs/contribute/faults.md names checks and tests that are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contribute" / "faults.md").read_text()
SIMULATION = ROOT / "tests" / "unit" / "operator" / "simulation"


def test_each_invariant_of_random_histories_names_its_check() -> None:
    rows = re.findall(r"^\| ([a-z-]+) \| .* \| `([\w/.]+)`: `(\w+)` \|$", PAGE, re.M)
    assert len(rows) > 40
    for name, file, check in rows:
        tree = ast.walk(ast.parse((SIMULATION / file).read_text()))
        found = [one for one in tree if isinstance(one, ast.FunctionDef) and one.name == check]
        assert found, f"{name}: {file} has no {check}"
        assert ast.get_docstring(found[0]), f"{name}: {check} has no docstring"


def test_the_checks_of_a_power_loss_are_the_tests_that_use_its_disk() -> None:
    files = [
        *(ROOT / "tests" / "unit" / "trainer").rglob("test_*.py"),
        *(ROOT / "tests/unit/operator/local").glob("*.py"),
        *(ROOT / "tests/power_loss").glob("test_*.py"),
    ]
    found = [
        name
        for file in files
        for name in re.findall(r"^def (test_\w+)\(\s*(?:\w+: Any, )?(?:disk\b|kind: Kind)", file.read_text(), re.M)
    ]
    assert found
    assert sorted(re.findall(r"\| `(test_\w+)` \|$", PAGE, re.M)) == sorted(found)


def test_the_checks_of_whole_lives_are_there() -> None:
    section = PAGE.partition("## Any one call of the operator")[2]
    rows = re.findall(r"\| (`.+`) in `(\w+\.py)` \|$", section, re.M)
    assert len(rows) >= 7
    for names, file in rows:
        source = (ROOT / "tests" / "cluster" / "crashes" / file).read_text()
        for name in re.findall(r"`(?:\w+\.)?(\w+)`", names):
            assert f"def {name}(" in source, f"{file} has no {name}"


def test_the_tests_of_foreign_input_are_those_of_make_fuzz() -> None:
    named = re.findall(r"\| `(tests/unit/[\w/]+\.py)` \|$", PAGE, re.M)
    target = re.search(r"^FUZZED :=(.*?)\n\w", (ROOT / "Makefile").read_text(), re.M | re.S)
    assert target
    assert sorted(named) == sorted(re.findall(r"tests/[\w/]+\.py", target[1]))
