# SPDX-License-Identifier: Apache-2.0
"""What docs/jobs/life.md tells Argo Workflows and Katib."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

PAGE = Path(__file__).parents[2] / "docs" / "jobs" / "life.md"


def expressions(tool: str) -> dict[str, Any]:
    """The block that stands after the paragraph which begins with this tool's name."""
    found = re.search(rf"^{tool}\b.*?```yaml\n(.*?)```", PAGE.read_text(), re.S | re.M)
    if found is None:
        raise ValueError(f"{PAGE} has no paragraph that begins with {tool} and has a block after it")
    block: dict[str, Any] = yaml.safe_load(found[1])
    return block
