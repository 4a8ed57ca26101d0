# SPDX-License-Identifier: Apache-2.0
import asyncio
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob.local.processes import launcher
from dtjob.local.processes.launcher import Adopted, Launcher, Start, inherited, launcher_ahead, readable


def test_nothing_of_another_job_is_inherited():
    environ = {"PATH": "/bin", "TF_CONFIG": "{}", "DTJOB_CHECKPOINT": "{}", "TF_CPP_MIN_LOG_LEVEL": "2"}
    ours = {"PYTHONUNBUFFERED": "1", "PYTHONHASHSEED": "0"}
    assert inherited(environ) == {"PATH": "/bin", "TF_CPP_MIN_LOG_LEVEL": "2", **ours}


def test_the_seed_of_hashes_is_the_one_of_pods_so_that_the_launcher_ahead_is_used():
    assert inherited({"PYTHONHASHSEED": "random"})["PYTHONHASHSEED"] == "0"


@pytest.fixture
def make(monkeypatch):
    made = []

    def make(**environment: str) -> Launcher:
        monkeypatch.setattr(launcher, "MODULE", "tests.unit.operator.local.processes.launcher_stand_in")
        made.append(Launcher({**os.environ, **environment}))
        return made[-1]

    yield make
    for each in made:
        each.close()


async def answers(forking: Launcher) -> bool:
    while (found := forking.answers()) is None:
        await readable(forking, 1.0)
    return found


async def launched(forking: Launcher, output: int | None = None) -> Adopted | None:
    start = Start("dtjob_trainer", ["a.py", "b"], {}, {} if output is None else {"1": output})
    with forking.adopting():
        if forking.ask(start):
            await readable(forking, 30.0)
        return forking.reply()


async def test_a_process_that_the_launcher_forks_is_a_child_of_the_caller(make, tmp_path: Path):
    forking = make()
    assert await answers(forking)
    with (tmp_path / "output").open("wb") as output:
        process = await launched(forking, output.fileno())
    assert process is not None
    assert await process.wait() == 7
    assert (tmp_path / "output").read_text() == "dtjob_trainer ['a.py', 'b']"


async def test_a_launcher_that_cannot_import_is_not_used_and_logged(make, caplog):
    forking = make(MISBEHAVE="end")
    assert not await answers(forking)
    assert "no imports today" in caplog.text
    assert await launched(forking) is None


async def test_a_launcher_that_has_ended_is_not_asked_again(make, caplog):
    forking = make(MISBEHAVE="end later")
    assert await answers(forking)
    for _ in range(2):
        assert await launched(forking) is None
    assert caplog.text.count("no forks today") == 1
    assert forking.answers() is False


async def test_a_launcher_leaves_no_process_running_if_the_kernel_has_no_pidfd(make, tmp_path: Path, monkeypatch):
    forking = make()
    assert await answers(forking)
    started = tmp_path / "pid"

    def none(pid: int) -> int:
        started.write_text(str(pid))
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", none)
    assert await launched(forking) is None
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


@pytest.fixture
def sleeping():
    process = subprocess.Popen(["sleep", "600"])
    process.returncode = 0  # somebody else waits for it
    adopted = Adopted(process.pid)
    yield adopted
    if adopted.poll() is None:
        adopted.send_signal(signal.SIGKILL)


async def test_the_end_of_an_adopted_process_is_seen_with_its_signal(sleeping):
    waiting = asyncio.create_task(sleeping.wait())
    await asyncio.sleep(0)
    assert sleeping.poll() is None
    sleeping.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(waiting, 10) == -signal.SIGTERM == sleeping.returncode
    sleeping.send_signal(signal.SIGKILL)  # to nobody
    assert await sleeping.wait() == -signal.SIGTERM


async def test_a_wait_can_be_cancelled(sleeping):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(sleeping.wait(), 0.05)
    sleeping.send_signal(signal.SIGKILL)
    assert await asyncio.wait_for(sleeping.wait(), 10) == -signal.SIGKILL


@pytest.mark.parametrize(
    "look", [lambda ended: ended.send_signal(signal.SIGTERM), Adopted.poll], ids=["signal", "poll"]
)
async def test_an_end_that_was_polled_before_the_wait_is_returned_by_it(sleeping, look):
    """As when Ctrl-C meets a task that has just ended, and the event loop has not heard of that yet."""
    waiting = asyncio.create_task(sleeping.wait())
    await asyncio.sleep(0)
    os.kill(sleeping.pid, signal.SIGKILL)
    os.waitid(os.P_PIDFD, sleeping.fileno(), os.WEXITED | os.WNOWAIT)
    look(sleeping)
    assert await asyncio.wait_for(waiting, 10) == -signal.SIGKILL


SHOW_WHAT_IS_IMPORTED = """
import sys
from dtjob.local.processes import launcher

class Shown:
    def __init__(self, environment):
        print(sorted(name for name in ("yaml", "dtjob.api.job", "dtjob.local.engine") if name in sys.modules))

    def close(self):
        print("closed")

launcher.Launcher = Shown
from dtjob.cli import main
sys.argv = ["dtjob", "run", sys.argv[1]]
main.main()
"""


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(launcher, "MODULE", "tests.unit.operator.local.processes.launcher_stand_in")
    file = tmp_path / "job.yaml"
    file.write_text("kind: Nothing")
    return file


def test_a_run_has_its_launcher_before_dtjob_imports_what_reads_a_manifest(manifest: Path):
    command = [sys.executable, "-c", SHOW_WHAT_IS_IMPORTED, str(manifest)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == "[]\nclosed\n", ended.stderr
    assert ended.returncode == 2
    assert ended.stderr.startswith("dtjob: ")


def test_the_launcher_started_ahead_has_the_environment_of_tasks_without_own_variables(manifest: Path):
    """It ends if it is not used."""
    with launcher_ahead(manifest) as ahead:
        assert ahead is not None
        assert ahead.environment == inherited(os.environ)
    assert not Path(f"/proc/{ahead.pid}").exists()


def test_no_launcher_is_started_ahead_without_a_manifest(tmp_path: Path):
    with launcher_ahead(tmp_path / "none.yaml") as ahead:
        assert ahead is None
