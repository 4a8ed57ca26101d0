# SPDX-License-Identifier: Apache-2.0
"""What tests of this tier share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.support.supervisors import Job, MakeJob


@pytest.fixture
def make_job(tmp_path: Path) -> Iterator[MakeJob]:
    """Makes jobs whose processes end with the test."""
    jobs: list[Job] = []

    def make(strategy: str = "Default", **counts: int) -> Job:
        jobs.append(Job(tmp_path, strategy, **(counts or {"chief": 1})))
        return jobs[-1]

    yield make
    for job in jobs:
        job.end()
