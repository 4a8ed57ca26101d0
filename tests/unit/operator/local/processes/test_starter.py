# SPDX-License-Identifier: Apache-2.0
import asyncio
import os
import sys
from pathlib import Path

import pytest

from dtjob.local.processes import launcher
from dtjob.local.processes.command import Command
from dtjob.local.processes.launcher import Adopted, read_by_imports
from dtjob.local.processes.starter import Starter, is_forked


def command(*arguments: str, **environment: str) -> Command:
    return Command([sys.executable, "-m", "dtjob_trainer", *arguments], {**os.environ, **environment})


@pytest.fixture
def starter(monkeypatch):
    monkeypatch.setattr(launcher, "MODULE", "tests.unit.operator.local.processes.launcher_stand_in")
    made = Starter()
    yield made
    made.close()


def test_tasks_differ_for_imports_in_their_own_variables_only():
    assert read_by_imports({"DTJOB_ROLE": "ps", "DTJOB_UID": "u", "TF_X": "1"}) == {"TF_X": "1"}


def test_only_a_supervisor_can_be_forked():
    assert is_forked(command("a.py"))
    assert not is_forked(Command(["python", "-c", "pass"], {}))
    assert not is_forked(Command(["sleep", "1"], {}))


async def test_tasks_of_one_environment_share_a_launcher(starter, tmp_path: Path):
    tasks = [command("a.py", DTJOB_INDEX=str(index)) for index in range(8)]
    starter.prepare(tasks)
    processes = await asyncio.gather(*(starter.start(task, tmp_path / f"{n}.log") for n, task in enumerate(tasks)))
    assert all(isinstance(process, Adopted) for process in processes)
    assert len({process.pid for process in processes}) == 8
    assert await asyncio.gather(*(process.wait() for process in processes)) == [7] * 8
    assert (tmp_path / "3.log").read_text() == "dtjob_trainer ['a.py']"


async def test_a_process_with_another_environment_is_started_without_the_launcher(starter, tmp_path: Path):
    starter.prepare([command("a.py")])
    process = await starter.start(command("--help", OTHER="1"), tmp_path / "log")
    assert not isinstance(process, Adopted)
    assert await process.wait() == 0
    assert "usage" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("misbehaviour", ["end", "end later"])
async def test_no_launcher_is_no_hindrance(starter, tmp_path: Path, misbehaviour: str):
    task = command("--help", MISBEHAVE=misbehaviour)
    starter.prepare([task])
    for _ in range(2):
        process = await starter.start(task, tmp_path / "log")
        assert await process.wait() == 0


@pytest.mark.parametrize("misbehaviour", ["stay silent", "stay silent later"])
async def test_a_launcher_that_hangs_holds_up_no_other_environment(starter, tmp_path: Path, misbehaviour: str):
    hanging, other = command("a.py", MISBEHAVE=misbehaviour), command("b.py", OTHER="1")
    starter.prepare([hanging, other])
    held = asyncio.create_task(starter.start(hanging, tmp_path / "held.log"))
    await asyncio.sleep(0)  # its start has begun
    process = await starter.start(other, tmp_path / "log")
    assert not held.done()
    assert isinstance(process, Adopted)
    assert await process.wait() == 7
    held.cancel()


async def test_a_launcher_that_is_there_already_serves_its_environment(starter, tmp_path: Path):
    task = command("a.py", DTJOB_INDEX="1")
    ahead = launcher.Launcher(read_by_imports(task.environment))
    given = Starter(ahead)
    try:
        given.prepare([task, command("b.py", OTHER="1")])
        assert await (await given.start(task, tmp_path / "log")).wait() == 7
        assert Path(f"/proc/{ahead.pid}").exists()
    finally:
        given.close()
    assert not Path(f"/proc/{ahead.pid}").exists()


async def test_a_launcher_that_no_task_can_use_ends_at_once(starter):
    ahead = launcher.Launcher(read_by_imports(os.environ))
    given = Starter(ahead)
    try:
        given.prepare([command("a.py", OTHER="1")])
        assert not Path(f"/proc/{ahead.pid}").exists()
    finally:
        given.close()
