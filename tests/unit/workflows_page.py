# SPDX-License-Identifier: Apache-2.0
"""The objects of Argo Workflows and Katib in docs/jobs/workflows.md, and in the tutorial about both tools."""

import re
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "jobs" / "workflows.md"
TUTORIAL = DOCS / "tutorials" / "search.md"


def objects(page: Path = PAGE) -> dict[str, dict[str, Any]]:
    """The page's objects that occur once, by kind."""
    found = [one for one in _documents(page) if "kind" in one]
    kinds = [one["kind"] for one in found]
    return {one["kind"]: one for one in found if kinds.count(one["kind"]) == 1}


def templates() -> dict[str, dict[str, Any]]:
    """The templates of the nightly workflow, by name."""
    return {one["name"]: one for one in objects()["CronWorkflow"]["spec"]["workflowSpec"]["templates"]}


def program_of_the_tutorials_night() -> dict[str, Any]:
    """The program that the tutorial gives to the job of the nightly workflow."""
    (found,) = [one["program"] for one in _documents(TUTORIAL) if "program" in one]
    return dict(found)


def trial_template(page: Path = PAGE) -> dict[str, Any]:
    """The part of the experiment that describes its trials."""
    found: dict[str, Any] = objects(page)["Experiment"]["spec"]["trialTemplate"]
    return found


def expressions(tool: str) -> dict[str, Any]:
    """The object that has a tool's conditions of success and failure."""
    found: dict[str, Any] = templates()["train"]["resource"] if tool == "Argo Workflows" else trial_template()
    return found


def _documents(page: Path) -> list[dict[str, Any]]:
    """All documents in the page's blocks of YAML."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S)
    return [one for block in blocks for one in yaml.safe_load_all(block)]
