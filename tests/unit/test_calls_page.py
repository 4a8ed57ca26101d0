# SPDX-License-Identifier: Apache-2.0
"""docs/training/calls.md names every call that the trainer refuses."""

from pathlib import Path

from dtjob_trainer.program.refused_methods import INSTEAD

PAGE = Path(__file__).parents[2] / "docs" / "training" / "calls.md"


def test_each_refused_method_is_on_the_page() -> None:
    section = PAGE.read_text().split("## Calls that are refused\n", 1)[1].split("\n## ", 1)[0]
    assert not {method for method in INSTEAD if method not in section}
