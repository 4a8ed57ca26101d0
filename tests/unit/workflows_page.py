# SPDX-License-Identifier: Apache-2.0
"""The objects of Argo Workflows and Katib in docs/jobs/workflows.md, and in the tutorial about both tools."""

from pathlib import Path
from typing import Any

from tests.unit.page_commands import ROOT, documents

PAGE = ROOT / "docs" / "jobs" / "workflows.md"
TUTORIAL = ROOT / "docs" / "tutorials" / "search.md"


def objects(page: Path = PAGE) -> dict[str, dict[str, Any]]:
    """The page's objects that occur once, by kind."""
    found = [one for one in documents(page) if "kind" in one]
    kinds = [one["kind"] for one in found]
    return {one["kind"]: one for one in found if kinds.count(one["kind"]) == 1}


def templates() -> dict[str, dict[str, Any]]:
    """The templates of the nightly workflow, by name."""
    return {one["name"]: one for one in objects()["CronWorkflow"]["spec"]["workflowSpec"]["templates"]}


def program_of_the_tutorials_night() -> dict[str, Any]:
    """The program that the tutorial gives to the job of the nightly workflow."""
    (found,) = [one["program"] for one in documents(TUTORIAL) if "program" in one]
    return dict(found)


def trial_template(page: Path = PAGE) -> dict[str, Any]:
    """The part of the experiment that describes its trials."""
    found: dict[str, Any] = objects(page)["Experiment"]["spec"]["trialTemplate"]
    return found


def expressions(tool: str) -> dict[str, Any]:
    """The object that has a tool's conditions of success and failure."""
    found: dict[str, Any] = templates()["train"]["resource"] if tool == "Argo Workflows" else trial_template()
    return found
