# SPDX-License-Identifier: Apache-2.0
"""docs/jobs/life.md names what may change."""

from __future__ import annotations

from pathlib import Path

from dtjob.crd.settled import CHANGEABLE
from dtjob.crd.suspended_roles import SIZE

PAGE = Path(__file__).parents[2] / "docs" / "jobs" / "life.md"


def test_the_page_names_every_field_that_may_change() -> None:
    section = PAGE.read_text().split("## What may change\n", 1)[1].split("\n## ", 1)[0]
    assert not {field for field in (*CHANGEABLE, *SIZE) if field not in section}
