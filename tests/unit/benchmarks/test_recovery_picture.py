# SPDX-License-Identifier: Apache-2.0
"""The picture of a recovery is drawn from its record."""

import json
from pathlib import Path

from benchmarks.operators.recovery_picture import PICTURE, RECORD, draw

SIDES = json.loads(RECORD.read_text())["sides"]


def test_the_picture_of_the_readme_is_that_of_the_record(tmp_path: Path) -> None:
    draw(SIDES, tmp_path / "recovery.svg")
    assert _lines(tmp_path / "recovery.svg") == _lines(PICTURE)


def _lines(picture: Path) -> list[str]:
    """What is drawn, without the version of matplotlib."""
    return [line for line in picture.read_text().splitlines() if "Matplotlib" not in line and "matplotlib" not in line]
