# SPDX-License-Identifier: Apache-2.0
"""The dtjobs of docs/migrate/tfjob.md, and the tests that it names."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "migrate" / "tfjob.md"
_DTJOB = re.compile(r"<!-- dtjob: (\S+) makes (.*?) -->\n```yaml\n(.*?)```", re.S)
_TFJOB = re.compile(r"<!-- tfjob -->\n```yaml\n(.*?)```", re.S)


def dtjobs() -> dict[str, tuple[dict[str, Any], list[str]]]:
    """Each dtjob by its name, with the tasks it makes. Raises ValueError where a block has no test."""
    text = PAGE.read_text()
    found = {name: (yaml.safe_load(block), tasks.split()) for name, tasks, block in _DTJOB.findall(text)}
    if len(found) + len(_TFJOB.findall(text)) != text.count("```yaml"):
        raise ValueError("a block of the page has no test: write <!-- dtjob: NAME makes TASK … --> before it")
    return found


def tfjob() -> dict[str, Any]:
    """The page's TFJob."""
    (block,) = _TFJOB.findall(PAGE.read_text())
    whole: dict[str, Any] = yaml.safe_load(block)
    return whole


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under this heading, row by row, without its head."""
    section = re.split(r"^#+ ", PAGE.read_text().split(f"# {heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    table = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]
