"""docs/jobs/life.md names what the code refuses, and what it lets change."""

from __future__ import annotations

from dtjob.crd.settled import CHANGEABLE
from dtjob.crd.suspended_roles import SIZE
from dtjob_trainer.models.refused_methods import INSTEAD
from tests.unit.life_page import PAGE


def section(title: str) -> str:
    return PAGE.read_text().split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_what_may_change_is_there() -> None:
    assert not {field for field in (*CHANGEABLE, *SIZE) if field not in section("What may change")}


def test_each_method_that_is_refused_is_there() -> None:
    assert not {method for method in INSTEAD if method not in section("What a program may call")}
