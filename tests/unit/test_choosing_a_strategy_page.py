# SPDX-License-Identifier: Apache-2.0
"""docs/jobs/choosing-a-strategy.md: it has every strategy, and jobs with the roles that it names are taken."""

import re
from pathlib import Path
from typing import Any

import pytest

from dtjob.api.job import API_VERSION, KIND
from dtjob.crd.answers.problems import problems
from dtjob.crd.schema import spec_schema

PAGE = (Path(__file__).parents[2] / "docs" / "jobs" / "choosing-a-strategy.md").read_text()
ROWS = re.findall(r"^\| [^|]+ \| `(\w+)` \| ([^|]+) \|$", PAGE, re.M)
ROLES = ("chief", "worker", "ps")


def test_the_page_has_every_strategy_once() -> None:
    assert sorted(name for name, _ in ROWS) == sorted(spec_schema()["properties"]["strategy"]["enum"])


@pytest.mark.parametrize(("strategy", "words"), ROWS)
def test_a_job_has_the_roles_that_it_names_and_no_others(strategy: str, words: str) -> None:
    named = [role for role in ROLES if re.search(rf"\b{role}\b", words)]
    for others in [(), *((role,) for role in ROLES if role not in named)]:
        spec: dict[str, Any] = {
            "strategy": strategy,
            "image": "dtjob-trainer:dev",
            "program": {"entrypoint": "train.py"},
            "replicaSpecs": {role: {} for role in (*named, *others)},
        }
        job = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "a"}, "spec": spec}
        assert bool(problems(job)) is bool(others)
