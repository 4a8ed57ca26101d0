# SPDX-License-Identifier: Apache-2.0
"""Each block of Python on the pages is run by a test: that of its page, or that of an example of which it is a part."""

import os
import re
import textwrap
from pathlib import Path

import pytest

from tests.unit.page_commands import PAGES, ROOT, blocks

DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
RUN_BY = {
    "training/integration.md": "tests/trainer/test_integration.py",
    "../README.md": "tests/trainer/test_page_pieces.py",
    "README.md": "tests/trainer/test_page_pieces.py",
    "training/data.md": "tests/trainer/test_page_pieces.py",
    "training/calls.md": "tests/trainer/test_page_pieces.py",
    "training/your-script.md": "tests/trainer/test_page_pieces.py",
    "jobs/data-and-secrets.md": "tests/trainer/test_tracking_example.py",
    "start/python.md": "tests/cluster/test_page_python.py",
}
"""By page, but for the tutorials: what runs its blocks of Python."""


def programs(page: Path) -> list[str]:
    """The page's blocks of Python."""
    return [textwrap.dedent(code) for language, code in blocks(page) if language == "python"]


def is_whole(block: str) -> bool:
    """Whether it is a script and not a piece of one: `tests/trainer/test_tutorials.py` runs it."""
    return block.startswith('"""') and "import" in block


def test_a_test_runs_the_programs_of_each_page() -> None:
    found = {os.path.relpath(page, DOCS) for page in PAGES if page not in TUTORIALS and programs(page)}
    assert found == set(RUN_BY)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_pieces_of_a_tutorial_are_parts_of_the_examples_that_it_names(page: Path) -> None:
    names = re.findall(r"\(\.\./\.\./(examples/\w+\.py)\)", page.read_text())
    sources = [(ROOT / name).read_text() for name in names]
    pieces = [code for language, code in blocks(page) if language == "python" and not is_whole(code)]
    assert [one for one in pieces if not any(one in source for source in sources)] == []


def test_every_example_that_a_tutorial_runs_has_a_test() -> None:
    """Whole scripts have one by `tests/trainer/test_tutorials.py`."""
    tests = "".join(file.read_text() for file in (ROOT / "tests" / "trainer").glob("test_*example*.py"))
    run = {
        name
        for page in TUTORIALS
        for name in re.findall(r"^\.venv/bin/dtjob run examples/(\S+)", page.read_text(), re.M)
    }
    assert len(run) > 2
    assert {name for name in run if f'"{name}"' not in tests} == set()
