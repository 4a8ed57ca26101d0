# SPDX-License-Identifier: Apache-2.0
"""docs/jobs/watching.md has each column of `kubectl get dtjobs`, in their order."""

import re
from pathlib import Path

from dtjob.crd.definition import COLUMNS

PAGE = (Path(__file__).parents[2] / "docs" / "jobs" / "watching.md").read_text()


def columns_after(line: str) -> list[str]:
    """The first cells of the first table after this line."""
    table = PAGE.split(line, 1)[1].split("| column | content |\n|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| (\S+) \|", table, re.M)


def test_the_page_has_the_columns_that_kubectl_always_shows() -> None:
    wanted = [name.upper() for name, _, _, priority, _ in COLUMNS if priority == 0]
    assert [name.upper() for name in columns_after("The short names are")] == wanted


def test_the_page_has_the_columns_of_wide_output() -> None:
    wanted = [name.upper() for name, _, _, priority, _ in COLUMNS if priority > 0]
    assert [name.upper() for name in columns_after("`kubectl get dtjobs -o wide` adds these")] == wanted
