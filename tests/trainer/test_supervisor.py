# SPDX-License-Identifier: Apache-2.0
"""Real supervisors on loopback, with small training processes that need no TensorFlow (small_program.py).

Here each looks after itself; what they do for each other is in test_supervisor_groups.py.
"""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob.plan.record.failure import ProgramEnd
from dtjob_trainer.__main__ import MOST_FILES
from tests.trainer.support.supervisors import (
    LAUNCHER,
    ROOT,
    SMALL_PROGRAM,
    Job,
    MakeJob,
    Running,
    exists,
    runs,
    wait_until,
    zombies_of,
)


def test_a_program_that_ends_well_gives_exit_code_0(make_job: MakeJob, tmp_path: Path) -> None:
    write_at_once(tmp_path / "exit", "0")
    assert make_job().start("chief-0", "exits").end() == 0


def test_the_last_status_is_left_for_the_kubelet(make_job: MakeJob, tmp_path: Path) -> None:
    left = tmp_path / "termination-log"
    running = make_job().start("chief-0", "chief_finishes_first", environ={"DTJOB_TERMINATION_LOG": str(left)})
    running.wait_for(state="training", stepped=True)
    assert left.read_text() == ""
    (tmp_path / "finish").touch()
    assert running.end() == 0
    last = json.loads(left.read_text())
    assert (last["task"], last["state"], last["step"]) == ("chief-0", "finished", 1)


def test_a_failed_process_leaves_the_termination_message_to_the_logs(make_job: MakeJob, tmp_path: Path) -> None:
    left = tmp_path / "termination-log"
    write_at_once(tmp_path / "exit", "3")
    assert make_job().start("chief-0", "exits", environ={"DTJOB_TERMINATION_LOG": str(left)}).end() == 3
    assert left.read_text() == ""


def told_at_the_end(running: Running) -> ProgramEnd:
    """What the operator reads out of the log's last lines."""
    return ProgramEnd.of(running.log.read_text())


def test_the_last_line_has_the_exception_and_that_no_step_was_done(make_job: MakeJob, tmp_path: Path) -> None:
    left = tmp_path / "termination-log"
    running = make_job().start("chief-0", "never_steps", environ={"DTJOB_TERMINATION_LOG": str(left)})
    status = running.wait_for(state="training", step=80)
    assert status["stepped"] is False
    (tmp_path / "fail").write_text("1")
    assert running.end() == 1
    end = told_at_the_end(running)
    assert (end.stepped, end.exception, end.step, end.transient) == (False, "KeyError: 'a b'", None, False)
    assert left.read_text() == ""


def test_the_last_line_says_that_a_step_was_done(make_job: MakeJob, tmp_path: Path) -> None:
    running = make_job().start("chief-0", "exits")
    assert running.wait_for(state="training")["stepped"] is True
    write_at_once(tmp_path / "exit", str(-signal.SIGSEGV))
    assert running.end() == 139
    end = told_at_the_end(running)
    assert (end.stepped, end.step, end.exception) == (True, 3, "")


def test_a_supervisor_killed_with_its_container_has_recorded_that_no_step_was_done(
    make_job: MakeJob, tmp_path: Path
) -> None:
    """As by the kernel, where the container's memory is used up."""
    left = tmp_path / "termination-log"
    running = make_job().start("chief-0", "never_steps", environ={"DTJOB_TERMINATION_LOG": str(left)})
    running.wait_for(state="training")
    running.process.kill()
    running.end()
    assert ProgramEnd.of(left.read_text()) == ProgramEnd(stepped=False)


@pytest.mark.parametrize(("ending", "code"), [("3", 3), (str(-signal.SIGSEGV), 139), (str(-signal.SIGKILL), 137)])
def test_a_failure_of_its_own_ends_the_container(make_job: MakeJob, tmp_path: Path, ending: str, code: int) -> None:
    write_at_once(tmp_path / "exit", ending)
    running = make_job().start("chief-0", "exits")
    assert running.end() == code
    assert f"ending with {code}" in running.log.read_text()


def test_the_status_port_serves_status_metrics_and_health(make_job: MakeJob) -> None:
    running = make_job().start("chief-0", "saves_on_sigterm")
    status = running.wait_for(state="training")
    assert status["task"] == "chief-0"
    assert (status["attempt"], status["pid"], status["incarnation"]) == (0, running.pid, 0)
    assert (status["jobUid"], status["restartsInPlace"], status["step"]) == ("uid-1", 0, 7)
    assert exists(status["trainingPid"])
    metrics = running.get("/metrics")
    labels = '{job_name="digits",job_namespace="default",task="chief-0"}'
    assert f"dtjob_trainer_step{labels} 7.0" in metrics
    assert f"dtjob_trainer_restarts_in_place_total{labels} 0.0" in metrics
    assert 'state="training",task="chief-0"} 1.0' in metrics
    assert running.get("/healthz") == "ok\n"


def test_sigterm_lets_the_program_save(make_job: MakeJob, tmp_path: Path) -> None:
    running = make_job().start("chief-0", "saves_on_sigterm")
    running.wait_for(state="training")
    running.process.terminate()
    assert running.end() == 143
    assert (tmp_path / "saved").read_text() == "7"


def test_sigterm_while_waiting_ends_at_once(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1, worker=1)
    running = job.start("chief-0", "group")
    status = running.wait_for(state="waiting", message="waiting for worker-0")
    running.process.terminate()
    assert running.end() == 143
    assert not exists(status["trainingPid"])


def test_a_program_that_ignores_sigterm_is_killed_before_the_grace_period_ends(make_job: MakeJob) -> None:
    running = make_job().start("chief-0", "ignores_sigterm", environ={"DTJOB_GRACE_SECONDS": "1"})
    status = running.wait_for(state="training")
    running.process.terminate()
    assert running.end() == 143
    assert not exists(status["trainingPid"])


def write_at_once(file: Path, text: str) -> None:
    """Write a file that nobody ever sees half written."""
    (file.parent / "half-written").write_text(text)
    (file.parent / "half-written").rename(file)


def test_sigterm_between_two_processes_starts_no_second(make_job: MakeJob, tmp_path: Path) -> None:
    """A stranger on TensorFlow's port holds the gap open: the port must be free before the second start."""
    job = make_job("MultiWorkerMirrored", chief=1)
    running = job.start("chief-0", "exits")
    running.wait_for(state="training")
    port = int(job.cluster["chief"][0].split(":")[1])
    with socket.create_server(("127.0.0.1", port)):
        write_at_once(tmp_path / "exit", "75")
        status = running.wait_for(message=f"waiting for port {port}, which another process holds")
        assert (status["restartsInPlace"], status["state"]) == (1, "waiting")
        assert "trainingPid" not in status
        running.process.terminate()
        assert running.end() == 143


def test_the_port_is_waited_for(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1)
    port = int(job.cluster["chief"][0].split(":")[1])
    with socket.create_server(("127.0.0.1", port)):
        running = job.start("chief-0", "saves_on_sigterm")
        running.wait_for(message=f"waiting for port {port}, which another process holds")
    running.wait_for(state="training")


def test_sigterm_while_the_port_is_waited_for(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1)
    port = int(job.cluster["chief"][0].split(":")[1])
    with socket.create_server(("127.0.0.1", port)):
        running = job.start("chief-0", "saves_on_sigterm")
        running.wait_for(message=f"waiting for port {port}, which another process holds")
        running.process.terminate()
        assert running.end() == 143


def test_processes_that_a_training_process_leaves_behind_are_ended(make_job: MakeJob, tmp_path: Path) -> None:
    running = make_job().start("chief-0", "leaves_processes")
    assert running.end() == 0
    children = [int(pid) for pid in (tmp_path / "children").read_text().split()]
    assert len(children) == 2
    assert not any(map(exists, children))


@pytest.mark.skipif(os.getuid() != 0, reason="only root can drop the right to kill")
def test_a_process_that_cannot_be_killed_ends_the_container(make_job: MakeJob, tmp_path: Path) -> None:
    """The supervisor loses the right to kill (as if the processes hung in the kernel) before its child leaves any."""
    job = make_job()
    job.launcher = (
        "import os, signal; from dtjob_trainer.supervisor import supervisor; supervisor.KILL_SECONDS = 0.3\n"
        "signal.signal(signal.SIGUSR1, lambda *_: os.setuid(65534))\n" + LAUNCHER
    )
    (tmp_path / "hold").touch()
    running = job.start("chief-0", "leaves_processes")
    running.wait_for(state="training")
    running.process.send_signal(signal.SIGUSR1)
    wait_until(lambda: "65534" in uids(running.pid), "the right is gone")
    (tmp_path / "hold").unlink()
    try:
        assert running.end() == 71
        assert "cannot be killed: ending the container" in running.log.read_text()
    finally:
        for pid in (tmp_path / "children").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


def uids(pid: int) -> str:
    """The user ids of a process: real, effective, saved, file system."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line for line in lines if line.startswith("Uid:"))


def test_orphans_are_reaped(make_job: MakeJob) -> None:
    running = make_job().start("chief-0", "leaves_an_orphan")
    orphan = running.wait_for(state="training")["orphan"]
    wait_until(lambda: not exists(orphan), "the orphan is reaped")
    assert zombies_of(running.pid) == []


def test_a_run_that_is_done_stays_done(make_job: MakeJob, tmp_path: Path) -> None:
    checkpoint = {"DTJOB_CHECKPOINT": json.dumps({"directory": str(tmp_path)})}
    (tmp_path / "DONE").write_text('{"uid": "uid-1", "step": 40, "status": {"step": 40, "metrics": {"loss": 0.5}}}')
    left = tmp_path / "termination-log"
    environ = {**checkpoint, "DTJOB_TERMINATION_LOG": str(left)}
    running = make_job().start("chief-0", "ignores_sigterm", environ=environ)
    assert running.end() == 0
    assert "marked DONE" in running.log.read_text()
    last = json.loads(left.read_text())
    assert (last["state"], last["step"], last["metrics"]) == ("finished", 40, {"loss": 0.5})
    (tmp_path / "DONE").write_text('{"uid": "of another job", "step": 40, "status": {}}')
    make_job().start("chief-0", "ignores_sigterm", environ=checkpoint).wait_for(state="training")


def test_a_supervisor_ends_with_its_parent(make_job: MakeJob, tmp_path: Path) -> None:
    job = make_job()
    program = (
        "import os, subprocess, sys; os.environ['DTJOB_PARENT'] = str(os.getpid()); "
        f"subprocess.Popen({[sys.executable, '-c', LAUNCHER]} + sys.argv[1:]).wait()"
    )
    environ = {
        "DTJOB_ROLE": "chief", "DTJOB_INDEX": "0",
        "DTJOB_STATUS_PORT": str(job.status_ports["chief-0"]),
        "SMALL_PROGRAM_DIRECTORY": str(tmp_path), "PYTHONPATH": str(ROOT / "trainer_image"),
    }  # fmt: skip
    command = [sys.executable, "-c", program, str(SMALL_PROGRAM), "saves_on_sigterm"]
    parent = subprocess.Popen(command, env={**os.environ, **environ})
    (tmp_path / "parent.log").touch()
    supervisor = Running(parent, job.status_ports["chief-0"], tmp_path / "parent.log")
    status = supervisor.wait_for(state="training")
    parent.kill()
    parent.wait()
    wait_until(lambda: not runs(status["trainingPid"]), "the end of the training process")
    wait_until(lambda: not runs(status["pid"]), "the end of the supervisor")
    assert (tmp_path / "saved").exists()


def test_a_supervisor_whose_parent_is_gone_already_ends(make_job: MakeJob) -> None:
    running = make_job().start("chief-0", "saves_on_sigterm", environ={"DTJOB_PARENT": str(2**22 - 1)})
    assert running.end() == 143


@pytest.mark.parametrize(
    ("environ", "arguments", "words"),
    [
        ({}, [], "usage: python3 -m dtjob_trainer ENTRYPOINT"),
        ({}, ["a.py"], "DTJOB_ROLE is not set"),
        ({"DTJOB_ROLE": "boss"}, ["a.py"], "DTJOB_ROLE is 'boss'; it must be one of chief"),
    ],
)
def test_a_wrong_start_says_what_is_wrong(environ: dict[str, str], arguments: list[str], words: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "dtjob_trainer", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "trainer_image"), **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_a_status_port_in_use_is_named(make_job: MakeJob) -> None:
    job = make_job()
    with socket.create_server(("127.0.0.1", job.status_ports["chief-0"])):
        running = job.start("chief-0", "ignores_sigterm")
        assert running.end() == 1
    words = f"PortInUse: DTJOB_STATUS_PORT {job.status_ports['chief-0']} cannot be listened on: "
    assert told_at_the_end(running).exception.startswith(words)


def test_a_rendezvous_port_in_use_is_named(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1, worker=1)
    with socket.create_server(("127.0.0.1", job.rendezvous_port)):
        running = job.start("chief-0", "ignores_sigterm")
        assert running.end() == 1
    assert f"DTJOB_RENDEZVOUS_ADDRESS {job.rendezvous_port} cannot be listened on" in running.log.read_text()


def start_on_a_full_disk(job: Job, task: str, program: str) -> Running:
    """Start it where none of its lines can be written."""
    (job.directory / f"{task}-0.log").symlink_to("/dev/full")
    running = job.start(task, program)
    running.log = Path("/dev/null")  # /dev/full can be read without end
    return running


def test_a_program_that_ends_well_on_a_full_disk_has_exit_code_0(make_job: MakeJob, tmp_path: Path) -> None:
    write_at_once(tmp_path / "exit", "0")
    assert start_on_a_full_disk(make_job(), "chief-0", "exits").end() == 0


def test_sigterm_is_passed_on_on_a_full_disk(make_job: MakeJob, tmp_path: Path) -> None:
    running = start_on_a_full_disk(make_job(), "chief-0", "saves_on_sigterm")
    running.wait_for(state="training")
    os.kill(running.pid, signal.SIGTERM)
    assert running.end() == 143
    assert (tmp_path / "saved").exists()


def test_a_group_starts_on_a_full_disk(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1, worker=1)
    for running in [start_on_a_full_disk(job, task, "saves_on_sigterm") for task in ("chief-0", "worker-0")]:
        running.wait_for(state="training")


def test_sigterm_during_the_supervisors_imports_is_not_lost(make_job: MakeJob) -> None:
    """The kernel drops one for PID 1 that has no handler."""
    job = make_job()
    job.launcher = 'import runpy; runpy.run_module("dtjob_trainer", run_name="__main__", alter_sys=True)'
    running = job.start("chief-0", "saves_on_sigterm")

    def holds_it_back() -> bool:
        (blocked,) = re.findall(r"^SigBlk:\s+(\w+)", Path(f"/proc/{running.pid}/status").read_text(), re.M)
        return bool(int(blocked, 16) >> (signal.SIGTERM - 1) & 1)

    wait_until(holds_it_back, "a process that holds SIGTERM back", 20)
    os.kill(running.pid, signal.SIGTERM)
    assert running.end() == 143


def test_a_supervisor_may_have_many_files_open(make_job: MakeJob) -> None:
    """A chief's supervisor has a connection of each of thousands of tasks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        running = make_job().start("chief-0", "saves_on_sigterm")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    running.wait_for(state="training")
    assert resource.prlimit(running.pid, resource.RLIMIT_NOFILE)[0] == min(hard, MOST_FILES)
