# SPDX-License-Identifier: Apache-2.0
import errno
import logging
import os
from pathlib import Path

import pytest

from dtjob.local.processes import launcher
from dtjob.local.processes.launcher import Launcher, Start


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


def test_a_process_that_the_launcher_forks_is_a_child_of_the_caller(make, tmp_path: Path):
    forking = make()
    assert forking.wait()
    with (tmp_path / "output").open("wb") as output:
        process = forking.launch(Start("dtjob_trainer", ["a.py", "b"], {}, {"1": output.fileno()}))
    assert process is not None
    assert os.waitid(os.P_PIDFD, process.fileno(), os.WEXITED | os.WNOWAIT).si_status == 7
    assert process.poll() == 7
    assert (tmp_path / "output").read_text() == "dtjob_trainer ['a.py', 'b']"


def test_a_launcher_that_cannot_import_is_not_used_and_logged(make, caplog):
    forking = make(MISBEHAVE="end")
    with caplog.at_level(logging.WARNING):
        assert not forking.wait()
    assert "no imports today" in caplog.text
    assert forking.launch(Start("dtjob_trainer", [], {}, {})) is None


def test_a_launcher_that_has_ended_is_not_asked_again(make, caplog):
    forking = make(MISBEHAVE="end later")
    assert forking.wait()
    for _ in range(2):
        assert forking.launch(Start("dtjob_trainer", [], {}, {})) is None
    assert caplog.text.count("no forks today") == 1
    assert forking.answers() is False


def test_the_launcher_ends_when_it_is_closed(make):
    forking = make()
    assert forking.wait()
    forking.close()
    forking.close()
    assert not Path(f"/proc/{forking.pid}").exists()


def test_a_launcher_leaves_no_process_running_if_the_kernel_has_no_pidfd(make, tmp_path: Path, monkeypatch):
    forking = make()
    assert forking.wait()
    started = tmp_path / "pid"

    def none(pid: int) -> int:
        started.write_text(str(pid))
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", none)
    assert forking.launch(Start("dtjob_trainer", [], {}, {})) is None
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
