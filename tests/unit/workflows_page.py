# SPDX-License-Identifier: Apache-2.0
"""The objects of Argo Workflows and Katib in docs/jobs/workflows.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

PAGE = Path(__file__).parents[2] / "docs" / "jobs" / "workflows.md"


def objects() -> dict[str, dict[str, Any]]:
    """The page's objects that occur once, by kind."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    found = [one for block in blocks for one in yaml.safe_load_all(block)]
    kinds = [one["kind"] for one in found]
    return {one["kind"]: one for one in found if kinds.count(one["kind"]) == 1}


def templates() -> dict[str, dict[str, Any]]:
    """The templates of the nightly workflow, by name."""
    return {one["name"]: one for one in objects()["CronWorkflow"]["spec"]["workflowSpec"]["templates"]}


def trial_template() -> dict[str, Any]:
    """The part of the experiment that describes its trials."""
    found: dict[str, Any] = objects()["Experiment"]["spec"]["trialTemplate"]
    return found


def expressions(tool: str) -> dict[str, Any]:
    """The object that has a tool's conditions of success and failure."""
    found: dict[str, Any] = {
        "Argo Workflows": lambda: templates()["train"]["resource"],
        "Katib": trial_template,
    }[tool]()
    return found
