# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference/ that `make reference` writes are fresh."""

from pathlib import Path

import pytest

from tools.reference.pages import PAGES, meanings_of_codes


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_a_page_is_fresh(file: Path) -> None:
    assert file.read_text() == PAGES[file](), "run `make reference`"


def test_a_constant_without_a_docstring_has_no_meaning() -> None:
    assert meanings_of_codes('A = 1\n"""One\n thing."""\nB = 2\nC = 3\n') == {1: "One thing."}
