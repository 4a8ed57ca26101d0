# SPDX-License-Identifier: Apache-2.0
"""The dtjobs of docs/migrate/tfjob.md, and the tests that it names."""

import re
from typing import Any

import yaml

from tests.unit.page_commands import ROOT, documents, marked

PAGE = ROOT / "docs" / "migrate" / "tfjob.md"


def dtjobs() -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Each dtjob by its name, with the tasks it makes. Raises ValueError where a block has no test."""
    found = {}
    for comment, text in marked(PAGE, "dtjob: ").items():
        name, tasks = comment.split(" makes ")
        found[name] = (yaml.safe_load(text), tasks.split())
    if len(found) + len(marked(PAGE, "tfjob")) != len(documents(PAGE)):
        raise ValueError("a block of the page has no test: write <!-- dtjob: NAME makes TASK … --> before it")
    return found


def tfjob() -> dict[str, Any]:
    """The page's TFJob."""
    whole: dict[str, Any] = yaml.safe_load(marked(PAGE, "tfjob")[""])
    return whole


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under this heading, row by row, without its head."""
    section = re.split(r"^#+ ", PAGE.read_text().split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]
