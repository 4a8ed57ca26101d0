# SPDX-License-Identifier: Apache-2.0
"""The files of the page: what the policy of the server is about, and what a browser would refuse."""

import re
from pathlib import Path

import pytest

from dtjob import ui
from dtjob.ui.server import TYPES

STATIC = Path(ui.__file__).parent / "static"
OURS = [name for name in TYPES if not name.startswith("uPlot")]
LARGEST = 100_000
"""Bytes of the whole page."""


def test_each_file_but_the_licence_is_served() -> None:
    assert {path.name for path in STATIC.iterdir()} == {*TYPES, "uPlot.LICENSE"}
    assert "MIT" in (STATIC / "uPlot.LICENSE").read_text()


def test_the_page_is_small() -> None:
    assert sum((STATIC / name).stat().st_size for name in TYPES) < LARGEST


@pytest.mark.parametrize("name", OURS)
def test_our_files_make_text_of_what_a_job_says(name: str) -> None:
    """Names, log lines and metrics are anybody's."""
    text = (STATIC / name).read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)


@pytest.mark.parametrize("name", OURS)
def test_our_files_load_nothing_from_elsewhere(name: str) -> None:
    text = (STATIC / name).read_text().replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]+\.[a-z]", text)


def test_the_page_has_no_script_and_no_style_in_itself() -> None:
    text = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|\sstyle=|\son[a-z]+=|javascript:", text)
