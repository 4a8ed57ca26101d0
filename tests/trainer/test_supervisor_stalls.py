# SPDX-License-Identifier: Apache-2.0
"""Real supervisors whose training processes make no step: small programs that need no TensorFlow (small_program.py)."""

import os
import signal
from pathlib import Path

from dtjob.plan.record.failure import ProgramEnd
from tests.trainer.support.supervisors import MakeJob, Running, runs, training_pid

LIMIT = 2
STALLS = {"DTJOB_STALL_TIMEOUT_SECONDS": str(LIMIT)}
IN_DATA = "_read_from_a_server_that_is_gone"


def told(running: Running) -> ProgramEnd:
    """What the operator reads out of the log's last lines."""
    return ProgramEnd.of(running.log.read_text())


def hang(tmp_path: Path, task: str) -> None:
    (tmp_path / "stall").write_text(task)


def test_a_task_that_hangs_ends_with_its_stack_in_its_log(make_job: MakeJob, tmp_path: Path) -> None:
    hang(tmp_path, "chief-0")
    running = make_job().start("chief-0", "stalls", environ=STALLS)
    process = training_pid(running)
    assert running.end() == 77
    found = told(running)
    assert (found.straggler, found.behind, found.step) == ("chief-0", "in its data function", 20)
    log = running.log.read_text()
    assert f"stalled: no new step for {LIMIT} s; chief-0 is behind: in its data function" in log
    assert f"in {IN_DATA}" in log
    assert log.index("most recent call first") < log.index(IN_DATA) < log.rindex("exitCode=77")
    assert not runs(process)
    assert not list(tmp_path.glob("core*"))


def test_a_stopped_process_ends_with_its_stack_in_the_log(make_job: MakeJob, tmp_path: Path) -> None:
    hang(tmp_path, "nobody")
    running = make_job().start("chief-0", "stalls", environ=STALLS)
    running.wait_for(step=20)
    os.kill(training_pid(running), signal.SIGSTOP)
    assert running.end() == 77
    assert told(running).behind == "its process is stopped (SIGSTOP)"
    assert "most recent call first" in running.log.read_text()
    assert "in stalls" in running.log.read_text()


def test_a_task_without_a_stall_timeout_waits_without_limit(make_job: MakeJob, tmp_path: Path) -> None:
    """As before there was one: two jobs hang, and only the one that asks for it ends."""
    hang(tmp_path, "chief-0")
    other = make_job().start("chief-0", "stalls")
    other.wait_for(step=20)
    assert make_job().start("chief-0", "stalls", environ=STALLS).end() == 77
    assert other.status()["step"] == 20
    (tmp_path / "stall").unlink()
    assert other.end() == 0


def test_a_slow_compilation_validation_or_save_is_no_stall(make_job: MakeJob, tmp_path: Path) -> None:
    """Longer than the limit by more than a look of the supervisor's."""
    running = {}
    for doing in ("compiling", "validating", "saving"):
        directory = tmp_path / doing
        directory.mkdir()
        (directory / f"rest-{doing}").write_text(str(LIMIT + 1.5))
        environ = {**STALLS, "SMALL_PROGRAM_DIRECTORY": str(directory)}
        running[doing] = make_job().start("chief-0", "stalls", environ=environ)
    assert {doing: each.end() for doing, each in running.items()} == dict.fromkeys(running, 0)


def test_the_straggler_of_a_group_ends_and_the_others_start_again(make_job: MakeJob, tmp_path: Path) -> None:
    hang(tmp_path, "worker-1")
    job = make_job("MultiWorkerMirrored", chief=1, worker=2)
    tasks = ("chief-0", "worker-0", "worker-1")
    chief, other, straggler = (job.start(task, "stalls", environ=STALLS) for task in tasks)
    assert straggler.end() == 77
    assert told(straggler).straggler == "worker-1"
    assert IN_DATA in straggler.log.read_text()
    (tmp_path / "stall").unlink()
    straggler = job.start("worker-1", "stalls", environ=STALLS)
    assert [each.end() for each in (chief, other, straggler)] == [0, 0, 0]
    for each in (chief, other):
        assert "stalled" not in each.log.read_text(), "one task is to blame, and is counted"
