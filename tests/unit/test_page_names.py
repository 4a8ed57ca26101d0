# SPDX-License-Identifier: Apache-2.0
"""Pages that list names of the code have all of them, and no others where a table is the list."""

import re
from pathlib import Path

import pytest

from dtjob.api.phase import ENDED, Phase
from dtjob.crd.definition import COLUMNS
from dtjob.crd.rule import CHANGEABLE
from dtjob.objects import kueue, labels
from dtjob.plan.record.failure import Cause
from tools.reference.conditions import CONDITIONS, REASONS_OF_PHASES
from tools.reference.events import EVENTS

ROOT = Path(__file__).parents[2]
TROUBLE = "operate/troubleshooting.md"
HARMLESS = {"AllTasksRunning", "Completed", "Restarting", *Cause}
"""Reasons of phases with which nothing is wrong, or of which nothing is known."""
ELASTIC = ("worker", "data")
"""Roles whose number may change."""
KUEUE = (kueue.QUEUE, kueue.PRIORITY_CLASS, kueue.PREBUILT, kueue.MAX_EXEC_TIME)
OURS = re.compile(r"^from dtjob\.api\.(?:names|job) import .*\bGROUP\b(?! as)", re.M)
"""How a module begins that has our group by this name. Others have that of Kueue or Volcano."""


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def section(name: str, heading: str) -> str:
    """The text of a page between this line and the next heading; the whole page for an empty line."""
    return page(name).split(f"{heading}\n", 1)[1].split("\n## ", 1)[0] if heading else page(name)


def first_cells(text: str) -> set[str]:
    """What the first cells of the tables have in code spans."""
    return {span for cell in re.findall(r"^\| ([^|]*)", text, re.M) for span in re.findall(r"`([\w./-]+)`", cell)}


def written_labels() -> set[str]:
    """Every name below our group that some module writes."""
    texts = [text for file in (ROOT / "operator" / "dtjob").rglob("*.py") if OURS.search(text := file.read_text())]
    return {f"training.dtjob.dev/{name}" for text in texts for name in re.findall(r'f"\{GROUP\}/([a-z-]+)"', text)}


@pytest.mark.parametrize(
    ("name", "heading", "wanted"),
    [
        ("jobs/life.md", "## What may change", {*CHANGEABLE, *(f"replicaSpecs.{one}.replicas" for one in ELASTIC)}),
        (TROUBLE, "## A cause", set(Cause)),
        (TROUBLE, "## A condition", set(CONDITIONS)),
        (TROUBLE, "## An event", set(EVENTS)),
        (TROUBLE, "## A phase and its reason", {one for some in REASONS_OF_PHASES.values() for one in some} - HARMLESS),
        ("reference/labels.md", "", {*KUEUE, labels.MANAGED_BY, *written_labels()}),
    ],
)
def test_the_tables_of_a_page_have_the_names_of_the_code_and_no_others(
    name: str, heading: str, wanted: set[str]
) -> None:
    assert first_cells(section(name, heading)) == wanted


@pytest.mark.parametrize(
    ("line", "wide"), [("The short names are", False), ("`kubectl get dtjobs -o wide` adds these", True)]
)
def test_the_page_about_watching_has_each_column(line: str, wide: bool) -> None:
    table = page("jobs/watching.md").split(line, 1)[1].split("|---|---|\n", 1)[1].split("\n\n", 1)[0]
    found = [cell.upper() for cell in re.findall(r"^\| (\S+) \|", table, re.M)]
    assert found == [name.upper() for name, _, _, priority, _ in COLUMNS if bool(priority) is wide]


def test_the_picture_of_a_jobs_life_has_each_phase_and_nothing_after_the_end() -> None:
    (picture,) = re.findall(r"```mermaid\n(.*?)```", page("jobs/life.md"), re.S)
    arrows = re.findall(r"^  (\S+) --> (\w+)", picture, re.M)
    assert {name for arrow in arrows for name in arrow} == {"[*]", *Phase}
    assert not {before for before, _ in arrows} & set(ENDED)
