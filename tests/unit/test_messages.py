# SPDX-License-Identifier: Apache-2.0
"""What an installed package says leads nowhere that is not installed: messages name no file of docs/."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "operator" / "dtjob", ROOT / "trainer_image" / "dtjob_trainer")
WRITES_PAGES = ROOT / "operator" / "dtjob" / "crd"
"""`reference/` and `__main__.py` write docs/reference/api.md; they run in a checkout only."""


def texts(source: str) -> Iterator[str]:
    """Every string of a module that is no docstring."""
    tree = ast.parse(source)
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_no_message_names_a_page_that_an_installed_package_lacks() -> None:
    files = [file for package in PACKAGES for file in package.rglob("*.py")]
    said = {
        f"{file.relative_to(ROOT)}: {text}"
        for file in files
        if WRITES_PAGES / "reference" not in file.parents and file != WRITES_PAGES / "__main__.py"
        for text in texts(file.read_text())
        if "docs/" in text
    }
    assert said == set()


def test_a_message_is_found_and_a_docstring_is_not() -> None:
    assert list(texts('"""docs/a.md"""\nx = f"see docs/b.md {1}"\n')) == ["see docs/b.md "]
