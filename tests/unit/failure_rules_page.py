# SPDX-License-Identifier: Apache-2.0
"""The blocks of docs/jobs/failure-rules.md and docs/migrate/failure-policies.md, by their names."""

import re
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "jobs" / "failure-rules.md", DOCS / "migrate" / "failure-policies.md")
_NAMED = re.compile(r"<!-- test: (\S+) -->\n```yaml\n(.*?)```", re.S)


def blocks() -> dict[str, dict[str, Any]]:
    """Each block's failurePolicy. Raises ValueError where a block has no name, and so no test."""
    text = "".join(page.read_text() for page in PAGES)
    found = _NAMED.findall(text)
    if len(found) != text.count("```yaml"):
        raise ValueError("a block of the pages has no name: write <!-- test: NAME --> before it")
    return {name: yaml.safe_load(block)["failurePolicy"] for name, block in found}
