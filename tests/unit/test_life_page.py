# SPDX-License-Identifier: Apache-2.0
"""docs/jobs/life.md names what may change, and its picture has all phases."""

import re
from pathlib import Path

from dtjob.api.phase import ENDED, Phase
from dtjob.crd.rule import CHANGEABLE
from dtjob.crd.rules.changes import SIZE

PAGE = Path(__file__).parents[2] / "docs" / "jobs" / "life.md"


def test_the_page_names_every_field_that_may_change() -> None:
    section = PAGE.read_text().split("## What may change\n", 1)[1].split("\n## ", 1)[0]
    assert not {field for field in (*CHANGEABLE, *SIZE) if field not in section}


def test_the_picture_has_each_phase_and_nothing_after_the_end() -> None:
    (picture,) = re.findall(r"```mermaid\n(.*?)```", PAGE.read_text(), re.S)
    arrows = re.findall(r"^  (\S+) --> (\w+)", picture, re.M)
    assert {name for arrow in arrows for name in arrow} == {"[*]", *Phase}
    assert not {before for before, _ in arrows} & set(ENDED)
