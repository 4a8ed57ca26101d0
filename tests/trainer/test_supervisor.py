"""Real supervisors on loopback, with small training processes that need no TensorFlow (small_program.py)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.trainer.support.supervisors import (
    LAUNCHER,
    ROOT,
    SMALL_PROGRAM,
    Job,
    Running,
    exists,
    runs,
    wait_until,
    zombies_of,
)

MakeJob = Callable[..., Job]


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


def start_group(make_job: MakeJob, program: str, workers: int = 2) -> tuple[Job, list[Running]]:
    job = make_job("MultiWorkerMirrored", chief=1, worker=workers)
    return job, [job.start(task, program) for task in ("chief-0", *(f"worker-{i}" for i in range(workers)))]


def training_pid(running: Running) -> int:
    return wait_until(lambda: int(running.status().get("trainingPid", 0)), "a training process")


def test_a_program_that_ends_well(make_job: MakeJob, tmp_path: Path) -> None:
    (tmp_path / "exit").write_text("0")
    assert make_job().start("chief-0", "exits").end() == 0


def test_the_last_status_is_left_for_the_kubelet(make_job: MakeJob, tmp_path: Path) -> None:
    left = tmp_path / "termination-log"
    running = make_job().start("chief-0", "chief_finishes_first", environ={"DTJOB_TERMINATION_LOG": str(left)})
    running.wait_for(state="training")
    assert not left.exists()
    (tmp_path / "finish").touch()
    assert running.end() == 0
    last = json.loads(left.read_text())
    assert (last["task"], last["state"], last["step"]) == ("chief-0", "finished", 1)


def test_after_a_failure_the_logs_speak(make_job: MakeJob, tmp_path: Path) -> None:
    left = tmp_path / "termination-log"
    (tmp_path / "exit").write_text("3")
    assert make_job().start("chief-0", "exits", environ={"DTJOB_TERMINATION_LOG": str(left)}).end() == 3
    assert not left.exists()


@pytest.mark.parametrize(("ending", "code"), [("3", 3), (str(-signal.SIGSEGV), 139), (str(-signal.SIGKILL), 137)])
def test_a_failure_of_its_own_ends_the_container(make_job: MakeJob, tmp_path: Path, ending: str, code: int) -> None:
    (tmp_path / "exit").write_text(ending)
    running = make_job().start("chief-0", "exits")
    assert running.end() == code
    assert f"ending with {code}" in running.log.read_text()


def test_status_metrics_and_health(make_job: MakeJob) -> None:
    running = make_job().start("chief-0", "saves_on_sigterm")
    status = running.wait_for(state="training")
    assert status["task"] == "chief-0"
    assert (status["attempt"], status["pid"], status["incarnation"]) == (0, running.pid, 0)
    assert (status["jobUid"], status["restartsInPlace"], status["step"]) == ("uid-1", 0, 7)
    assert exists(status["trainingPid"])
    metrics = running.get("/metrics")
    assert 'dtjob_trainer_step{job="digits",namespace="default",task="chief-0"} 7.0' in metrics
    assert 'dtjob_trainer_restarts_in_place_total{job="digits",namespace="default",task="chief-0"} 0.0' in metrics
    assert 'state="training",task="chief-0"} 1.0' in metrics
    assert running.get("/healthz") == "ok\n"


def test_the_evaluator_waits_for_nobody(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1, worker=2, evaluator=1)
    job.start("evaluator-0", "saves_on_sigterm").wait_for(state="training")


def test_survivors_of_a_killed_worker_start_again_in_place(make_job: MakeJob, tmp_path: Path) -> None:
    (tmp_path / "endless").touch()
    job, (chief, victim, worker) = start_group(make_job, "group")
    before = [running.wait_for(state="training", seenGeneration=1) for running in (chief, worker)]
    assert training_pid(victim)
    wait_until(lambda: chief.status()["step"] > 0, "a step")
    os.kill(training_pid(victim), signal.SIGKILL)
    assert victim.end() == 137
    replacement = job.start("worker-0", "group")
    replacement.wait_for(state="training", seenGeneration=2)
    for running, old in zip((chief, worker), before, strict=True):
        new = running.wait_for(state="training", seenGeneration=2, restartsInPlace=1)
        assert new["pid"] == old["pid"]
        assert new["trainingPid"] != old["trainingPid"]
        assert not exists(old["trainingPid"])
        assert new["lastRestart"]["cause"] == "worker-0 was lost"
    (tmp_path / "endless").unlink()
    assert [running.end() for running in (chief, worker, replacement)] == [0, 0, 0]


def test_a_killed_supervisor_takes_its_training_process_along(make_job: MakeJob, tmp_path: Path) -> None:
    (tmp_path / "endless").touch()
    job, (chief, victim, worker) = start_group(make_job, "group")
    pid = training_pid(victim)
    worker.wait_for(state="training")
    victim.process.kill()
    victim.end()
    wait_until(lambda: not runs(pid), "the end of the training process")
    job.start("worker-0", "group").wait_for(state="training", seenGeneration=2)
    assert chief.wait_for(state="training", seenGeneration=2)["restartsInPlace"] == 1


def test_the_group_waits_for_a_new_chief_and_goes_on(make_job: MakeJob, tmp_path: Path) -> None:
    (tmp_path / "endless").touch()
    job, (chief, *workers) = start_group(make_job, "group")
    for worker in workers:
        worker.wait_for(state="training")
    chief.process.kill()
    chief.end()
    waiting = workers[0].wait_for(state="waiting", restartsInPlace=1)
    wait_until(lambda: "cannot reach the chief" in workers[0].status().get("message", ""), "a message")
    assert waiting["incarnation"] == 1
    chief = job.start("chief-0", "group")
    chief.wait_for(state="training")
    for worker in workers:
        status = worker.wait_for(state="training", restartsInPlace=1)
        assert status["lastRestart"]["cause"] == "the chief task was lost"
    (tmp_path / "endless").unlink()
    assert [running.end() for running in (chief, *workers)] == [0, 0, 0]


def test_survivors_that_hang_in_start_up_are_started_again(make_job: MakeJob, tmp_path: Path) -> None:
    """As in TensorFlow's start-up, which waits an hour for a peer that never comes."""
    (tmp_path / "endless").touch()
    (tmp_path / "hang-worker-0").touch()
    (tmp_path / "hang-worker-1").touch()
    job, (chief, victim, worker) = start_group(make_job, "group")
    old = [running.wait_for(state="starting", seenGeneration=1)["trainingPid"] for running in (chief, worker)]
    os.kill(training_pid(victim), signal.SIGKILL)
    victim.end()
    (tmp_path / "hang-worker-0").unlink()
    replacement = job.start("worker-0", "group")
    worker.wait_for(seenGeneration=2)
    (tmp_path / "hang-worker-1").unlink()
    for running in (chief, worker, replacement):
        running.wait_for(state="training", seenGeneration=2)
    assert "generation 1 is over: worker-0 was lost" in chief.log.read_text()
    assert not any(map(exists, old))
    assert chief.status()["lastRestart"]["cause"] == "worker-0 was lost"


def test_a_parameter_server_chief_waits_until_all_serve(make_job: MakeJob, tmp_path: Path) -> None:
    job = make_job("ParameterServer", chief=1, worker=1, ps=1)
    chief, worker = job.start("chief-0", "ps_job"), job.start("worker-0", "ps_job")
    chief.wait_for(state="waiting", message="waiting for ps-0")
    worker.wait_for(state="serving")
    ps = job.start("ps-0", "ps_job")
    before = chief.wait_for(state="training")
    serving = worker.status()["trainingPid"]
    ps.process.kill()
    ps.end()
    chief.wait_for(state="waiting", restartsInPlace=1)
    wait_until(lambda: chief.status().get("message") == "waiting for ps-0", "the chief waits for the new ps")
    job.start("ps-0", "ps_job").wait_for(state="serving")
    after = chief.wait_for(state="training")
    assert after["pid"] == before["pid"]
    assert after["lastRestart"]["cause"] == "ps-0 was lost"
    assert worker.status()["trainingPid"] == serving, "the worker goes on serving"
    worker.process.kill()
    worker.end()
    job.start("worker-0", "ps_job").wait_for(state="serving")
    (tmp_path / "finish").touch()
    assert chief.end() == 0
    assert "(2)" not in chief.log.read_text(), "a dead worker restarts nobody"


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


def test_peers_hear_of_a_preemption(make_job: MakeJob, tmp_path: Path) -> None:
    job, (chief, leaving, worker) = start_group(make_job, "tells_of_preemption")
    for running in (chief, leaving, worker):
        running.wait_for(state="training")
    leaving.process.terminate()
    for running in (chief, worker):
        status = running.wait_for(state="waiting", restartsInPlace=1)
        assert status["heard"] == {"peerPreempted": "worker-0"}
        assert status["lastRestart"]["cause"] == "worker-0 was preempted"
    (tmp_path / "leave").touch()
    assert leaving.end() == 143
    replacement = job.start("worker-0", "tells_of_preemption")
    assert [running.end() for running in (chief, worker, replacement)] == [0, 0, 0]


def test_what_a_training_process_leaves_behind_is_ended(make_job: MakeJob, tmp_path: Path) -> None:
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


def test_losing_peers_that_are_all_there_ends_with_76(make_job: MakeJob) -> None:
    running = make_job().start("chief-0", "loses_its_peers")
    assert running.end() == 76
    assert running.log.read_text().count("restarting in place") == 2


def test_a_waiting_worker_ends_well_when_the_chief_has_finished(make_job: MakeJob, tmp_path: Path) -> None:
    _, (chief, worker) = start_group(make_job, "chief_finishes_first", workers=1)
    chief.wait_for(state="training")
    (tmp_path / "lose").touch()
    worker.wait_for(state="waiting", restartsInPlace=1, incarnation=1)
    (tmp_path / "finish").touch()
    assert chief.end() == 0
    assert worker.end() == 0


def test_a_finished_worker_stays_until_the_chief_has_finished(make_job: MakeJob, tmp_path: Path) -> None:
    _, (chief, *workers) = start_group(make_job, "chief_finishes_last")
    for worker in workers:
        assert worker.wait_for(state="finished")["message"] == "waiting for the chief task to finish"
    (tmp_path / "finish").touch()
    assert [running.end() for running in (chief, *workers)] == [0, 0, 0]


def test_a_finished_worker_trains_again_when_the_chief_has_failed(make_job: MakeJob, tmp_path: Path) -> None:
    job, (chief, worker) = start_group(make_job, "chief_finishes_last", workers=1)
    worker.wait_for(state="finished")
    os.kill(training_pid(chief), signal.SIGKILL)
    assert chief.end() == 137
    chief = job.start("chief-0", "chief_finishes_last")
    status = worker.wait_for(state="finished", restartsInPlace=1)
    assert status["lastRestart"]["cause"] == "the chief task was lost"
    (tmp_path / "finish").touch()
    assert [running.end() for running in (chief, worker)] == [0, 0]


def test_a_finished_worker_ends_well_when_it_is_told_to(make_job: MakeJob) -> None:
    _, (_, worker) = start_group(make_job, "chief_finishes_last", workers=1)
    worker.wait_for(state="finished")
    worker.process.terminate()
    assert worker.end() == 0


def test_a_wrong_cluster_hash_is_refused_by_name(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1, worker=1)
    job.start("chief-0", "group")
    worker = job.start("worker-0", "group", environ={"DTJOB_CLUSTER_HASH": "older"})
    worker.wait_for(message="worker-0 has cluster hash older; the chief task (chief-0) has hash-1")
    worker.process.terminate()
    worker.end()
    job.start("worker-0", "group").wait_for(state="training")


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


def test_a_chief_that_was_lost_after_the_end_tells_those_who_wait(make_job: MakeJob, tmp_path: Path) -> None:
    checkpoint = {"DTJOB_CHECKPOINT": json.dumps({"directory": str(tmp_path)})}
    job, (chief, *workers) = start_group(make_job, "chief_finishes_last")
    for worker in workers:
        worker.wait_for(state="finished")
    chief.process.kill()
    chief.end()
    (tmp_path / "DONE").write_text('{"uid": "uid-1", "step": 40, "status": {}}')
    chief = job.start("chief-0", "chief_finishes_last", environ=checkpoint)
    assert [running.end() for running in (chief, *workers)] == [0, 0, 0]


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
        ({}, [], "usage: python3 -m dtjob_trainer ENTRY"),
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
    assert f"DTJOB_STATUS_PORT {job.status_ports['chief-0']} cannot be listened on" in running.log.read_text()
