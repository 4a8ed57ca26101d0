"""What tests of this tier share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.support import gpus
from tests.trainer.support.supervisors import Job, MakeJob


@pytest.fixture(scope="module", autouse=True)
def _on_cpus(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where there are GPUs, only tests of them see any: on others bits are compared, and CPUs split into devices."""
    with pytest.MonkeyPatch.context() as patch:
        if gpus.is_here() and request.path.name != "test_on_gpus.py":
            patch.setenv("CUDA_VISIBLE_DEVICES", "-1")
        yield


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
