"""How a local run ends. Its processes are small programs in place of supervisors."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtjob.api.job import Job
from dtjob.local import command
from dtjob.local.command import Command
from dtjob.local.engine import Engine
from dtjob.local.outcome import Outcome
from dtjob.local.runs import open_run
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders

SERVES = ["sleep", "600"]


async def run(job: Job, directory: Path, monkeypatch: pytest.MonkeyPatch, chief: list[str]) -> Outcome:
    """Run the job where the chief is this program and every other task serves until it is told to end."""

    def local_command(pod: Manifest, *_: object, **__: object) -> Command:
        environment = command.container_environment(command.training_container(pod))
        return Command(chief if "-chief-" in pod["metadata"]["name"] else SERVES, environment)

    monkeypatch.setattr(command, "local_command", local_command)
    record = open_run(job, directory)
    try:
        return await Engine(job, record, lambda snapshot: None, lambda event: None).run()
    finally:
        record.close()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("clean", ["Running", "None"])
async def test_it_ends_though_tasks_would_serve_on(clean: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    job = builders.job("ParameterServer", ps=1, runPolicy={"cleanPods": clean})
    outcome = await run(job, tmp_path, monkeypatch, ["true"])
    assert outcome.snapshot.status["phase"] == "Succeeded"
    assert not outcome.snapshot.pids


@pytest.mark.timeout(60)
@pytest.mark.parametrize("clean", ["Running", "None"])
async def test_it_ends_though_survivors_of_a_failure_would_go_on(
    clean: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    job = builders.job(runPolicy={"cleanPods": clean}, failurePolicy={"maxRestarts": 0})
    outcome = await run(job, tmp_path, monkeypatch, ["false"])
    assert outcome.snapshot.status["phase"] == "Failed"
    assert not outcome.snapshot.pids
