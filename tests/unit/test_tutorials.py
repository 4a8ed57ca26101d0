# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/: pieces of Python are parts of examples, and all that the pages run has a test elsewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def blocks(page: Path) -> list[str]:
    """The page's blocks of Python."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


def is_whole(block: str) -> bool:
    """Whether it is a script and not a piece of one: `tests/trainer/test_tutorials.py` runs it."""
    return block.startswith('"""') and "import" in block


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pieces_are_parts_of_the_examples_that_the_page_names(page: Path) -> None:
    names = re.findall(r"\(\.\./\.\./(examples/\w+\.py)\)", page.read_text())
    sources = [(ROOT / name).read_text() for name in names]
    assert [one for one in blocks(page) if not is_whole(one) and not any(one in source for source in sources)] == []


def test_the_tutorials_have_whole_scripts_and_parts_of_scripts() -> None:
    found = [is_whole(block) for page in PAGES for block in blocks(page)]
    assert True in found
    assert False in found


def test_every_example_that_a_page_runs_has_a_test() -> None:
    """Whole scripts have one by `tests/trainer/test_tutorials.py`."""
    tests = "".join(file.read_text() for file in (ROOT / "tests" / "trainer").glob("test_*example*.py"))
    run = {
        name for page in PAGES for name in re.findall(r"^\.venv/bin/dtjob run examples/(\S+)", page.read_text(), re.M)
    }
    assert len(run) > 2
    assert {name for name in run if f'"{name}"' not in tests} == set()
