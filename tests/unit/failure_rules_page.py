# SPDX-License-Identifier: Apache-2.0
"""The blocks of docs/jobs/failure-rules.md and docs/migrate/failure-policies.md, by their names."""

from typing import Any

import yaml

from tests.unit.page_commands import ROOT, documents, marked

PAGES = (ROOT / "docs" / "jobs" / "failure-rules.md", ROOT / "docs" / "migrate" / "failure-policies.md")


def blocks() -> dict[str, dict[str, Any]]:
    """Each block's failurePolicy. Raises ValueError where a block has no name, and so no test."""
    found = {name: text for page in PAGES for name, text in marked(page, "test: ").items()}
    if len(found) != sum(len(documents(page)) for page in PAGES):
        raise ValueError("a block of the pages has no name: write <!-- test: NAME --> before it")
    return {name: yaml.safe_load(text)["failurePolicy"] for name, text in found.items()}
