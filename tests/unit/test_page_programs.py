# SPDX-License-Identifier: Apache-2.0
"""Each block of Python on the pages is Python, and a test runs it."""

import ast
import os
import textwrap
from pathlib import Path

import pytest

from tests.unit.page_commands import PAGES, ROOT, blocks

DOCS = ROOT / "docs"
RUN_BY = {
    "training/integration.md": "tests/trainer/test_integration.py",
    "../README.md": "tests/trainer/test_page_pieces.py",
    "README.md": "tests/trainer/test_page_pieces.py",
    "training/data.md": "tests/trainer/test_page_pieces.py",
    "training/calls.md": "tests/trainer/test_page_pieces.py",
    "training/your-script.md": "tests/trainer/test_page_pieces.py",
    "jobs/data-and-secrets.md": "tests/trainer/test_tracking_example.py",
    "start/python.md": "tests/cluster/test_page_python.py",
    **{f"tutorials/{page.name}": "tests/unit/test_tutorials.py" for page in sorted((DOCS / "tutorials").glob("*.md"))},
}
"""By page: what runs its blocks of Python. That of the tutorials has whole scripts run, and parts of examples found."""


def programs(page: Path) -> list[str]:
    """The page's blocks of Python."""
    return [textwrap.dedent(code) for language, code in blocks(page) if language == "python"]


WITH_PROGRAMS = [page for page in PAGES if programs(page)]


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_of_python_are_python(page: Path) -> None:
    for code in programs(page):
        ast.parse(code)


@pytest.mark.parametrize("page", WITH_PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_test_runs_the_blocks_of_python(page: Path) -> None:
    assert (ROOT / RUN_BY[os.path.relpath(page, DOCS)]).is_file()
