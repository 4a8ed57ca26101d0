# SPDX-License-Identifier: Apache-2.0
"""Every job in README.md and docs/, and every part of one, is one that an API server takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.api.job import API_VERSION, KIND
from dtjob.crd.answers.problems import problems
from dtjob.crd.schema import spec_schema

ROOT = Path(__file__).parents[2]
OWN_TEST = "failure-rules.md"
"""Its blocks are for a job with a ps and an evaluator: `test_failure_rules_page.py`."""
FIELDS = set(spec_schema()["properties"])
REST_OF_A_JOB = {
    "strategy": "MultiWorkerMirrored",
    "image": "dtjob-trainer:dev",
    "program": {"entrypoint": "train.py"},
    "replicaSpecs": {"chief": {}, "worker": {"replicas": 3}},
    "checkpoint": {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "digits"}}}},
}


def documents(page: Path) -> Iterator[dict[str, Any]]:
    """The objects in the page's blocks of YAML."""
    for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.M | re.S):
        yield from (one for one in yaml.safe_load_all(block) if isinstance(one, dict))


def jobs(page: Path) -> Iterator[dict[str, Any]]:
    """The page's jobs. A part of a spec is made a whole one."""
    for document in documents(page):
        if document.get("kind") == KIND:
            yield document
            continue
        part = document["spec"] if set(document) == {"spec"} else document
        if set(part) <= FIELDS:
            whole = {**REST_OF_A_JOB, **part}
            yield {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "digits"}, "spec": whole}


PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page.name != OWN_TEST]
CASES = [(str(page.relative_to(ROOT)), index, job) for page in PAGES for index, job in enumerate(jobs(page))]


@pytest.mark.parametrize(("page", "index", "job"), CASES, ids=[f"{page}-{index}" for page, index, _ in CASES])
def test_a_job_of_a_page_is_taken(page: str, index: int, job: dict[str, Any]) -> None:
    assert problems(job) == []


def test_the_readme_and_the_pages_have_jobs() -> None:
    assert {"README.md", "docs/start/quickstart.md", "docs/jobs/elastic.md"} <= {page for page, _, _ in CASES}


def test_a_manifest_of_a_page_with_an_unknown_field_is_a_problem(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```yaml\nreplicaSpecs: {worker: {count: 2}}\n```\n")
    assert [bool(problems(job)) for job in jobs(page)] == [True]
