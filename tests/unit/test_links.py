# SPDX-License-Identifier: Apache-2.0
"""Every link in a page leads to a file that is there, and to a heading that is there."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.site import in_repository

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    ROOT / "helm" / "dtjob" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").rglob("*.md")),
]
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_NO_ANCHOR = re.compile(r"[^\w\- ]")


def anchors(page: Path) -> set[str]:
    """What a link may name after `#`, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.+)$", _CODE_BLOCK.sub("", page.read_text()), re.M)
    return {_NO_ANCHOR.sub("", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page: Path) -> Iterator[str]:
    """The page's links to nothing. Links to other hosts are not followed."""
    for link in _LINK.findall(_CODE_BLOCK.sub("", page.read_text())):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert list(broken(page)) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`, c\n[1](page.md) [2](#a-b-c) [3](#d) [4](gone.md) [5](https://example.com/x.md)\n")
    assert list(broken(page)) == ["#d", "gone.md"]


def of_the_site(entries: list[Any]) -> Iterator[tuple[str, str]]:
    """Title and file of the pages of a part of mkdocs.yml's navigation; the file is relative to docs/."""
    for entry in entries:
        for title, found in entry.items() if isinstance(entry, dict) else ():
            if isinstance(found, list):
                yield from of_the_site(found)
            else:
                yield title, os.path.relpath(in_repository(found), "docs")


def test_the_index_has_the_tabs_and_the_titles_of_the_site() -> None:
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1])
    tabs = {name: list(of_the_site(entries)) for tab in navigation for name, entries in tab.items()}
    index = (ROOT / "docs" / "README.md").read_text()
    rows = {
        name: re.findall(r"\[([^]]+)\]\(([^)]+)\)", row)
        for name, row in re.findall(r"^\| (\w+) \| (.*) \|$", index, re.M)
    }
    assert {name: rows.get(name) for name in tabs} == tabs
    everywhere = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert everywhere - {file for pages in tabs.values() for _, file in pages} == set()


def test_no_two_pages_have_the_same_name() -> None:
    names = Counter(page.stem.replace("_", "-").lower() for page in (ROOT / "docs").rglob("*.md"))
    assert [name for name, count in names.items() if count > 1] == []
