# SPDX-License-Identifier: Apache-2.0
"""Real supervisors of one group, which lose each other: their rendezvous, restarts in place, and the end of all."""

import http.client
import json
import os
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.trainer.support.supervisors import (
    LAUNCHER,
    Job,
    MakeJob,
    exists,
    runs,
    start_group,
    training_pid,
    wait_until,
)


def test_the_evaluator_does_not_wait_for_other_tasks(make_job: MakeJob) -> None:
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


def test_tasks_that_cannot_reach_each_other_say_so_in_log_and_status(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1, worker=2)
    patience = "from dtjob_trainer.supervisor import unreached\nunreached.SAID_AFTER_SECONDS = 2.0\n"
    job.launcher = patience + LAUNCHER
    chief, worker = job.start("chief-0", "group"), job.start("worker-1", "group")
    address = "no-such-host.invalid:2224"
    alone = job.start("worker-0", "group", environ={"DTJOB_RENDEZVOUS_ADDRESS": address})
    chief.wait_for(state="waiting", unreached={"worker-0": ""})
    wait_until(lambda: "gaierror" in alone.status().get("unreached", {}).get("chief-0", ""), "the reason")
    assert "unreached" not in worker.wait_for(state="waiting", message="waiting for worker-0"), "it reaches the chief"
    line = "level=warning task=worker-0 message=\"cannot reach the chief task's supervisor at " + address
    wait_until(lambda: line in alone.log.read_text(), "the worker's line")
    wait_until(lambda: "without a report of worker-0" in chief.log.read_text(), "the chief's line")
    alone.process.kill()
    alone.end()
    again = job.start("worker-0", "group")
    assert [one.end() for one in (chief, worker, again)] == [0, 0, 0]


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


def test_a_preemption_is_reported_to_the_peers(make_job: MakeJob, tmp_path: Path) -> None:
    job, (chief, leaving, worker) = start_group(make_job, "tells_of_preemption")
    for running in (chief, leaving, worker):
        running.wait_for(state="training")
    leaving.process.terminate()
    for running in (chief, worker):
        status = running.wait_for(state="waiting", restartsInPlace=1)
        assert status["heard"] == {"peerPreempted": "worker-0"}
        assert status["lastRestart"]["cause"] == "worker-0 was told to end"
    (tmp_path / "leave").touch()
    assert leaving.end() == 143
    replacement = job.start("worker-0", "tells_of_preemption")
    assert [running.end() for running in (chief, worker, replacement)] == [0, 0, 0]


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


def test_a_finished_worker_ends_with_exit_code_0_after_sigterm(make_job: MakeJob) -> None:
    _, (_, worker) = start_group(make_job, "chief_finishes_last", workers=1)
    worker.wait_for(state="finished")
    worker.process.terminate()
    assert worker.end() == 0


def test_a_wrong_cluster_hash_is_refused_by_name(make_job: MakeJob) -> None:
    job = make_job("MultiWorkerMirrored", chief=1, worker=1)
    job.start("chief-0", "group")
    worker = job.start("worker-0", "group", environ={"DTJOB_CLUSTER_HASH": "older"})
    worker.wait_for(message="worker-0 has another cluster spec than the chief task (chief-0)")
    worker.process.terminate()
    worker.end()
    job.start("worker-0", "group").wait_for(state="training")


def test_a_chief_that_was_lost_after_the_end_lets_waiting_workers_end(make_job: MakeJob, tmp_path: Path) -> None:
    checkpoint = {"DTJOB_CHECKPOINT": json.dumps({"directory": str(tmp_path)})}
    job, (chief, *workers) = start_group(make_job, "chief_finishes_last")
    for worker in workers:
        worker.wait_for(state="finished")
    chief.process.kill()
    chief.end()
    (tmp_path / "DONE").write_text('{"uid": "uid-1", "step": 40, "status": {}}')
    chief = job.start("chief-0", "chief_finishes_last", environ=checkpoint)
    assert [running.end() for running in (chief, *workers)] == [0, 0, 0]


def registration(job: Job, task: str, **changes: object) -> dict[str, object]:
    """What a supervisor of this job would say of a task."""
    return {
        "uid": job.uid, "clusterHash": "hash-1", "task": task, "attempt": 0, "supervisor": "stranger",
        "incarnation": 0, "phase": "waiting", "generation": 0, "step": None, "stalled": False, "stopped": False,
        "doing": "", "crash": "", **changes,
    }  # fmt: skip


def post(port: int, body: dict[str, object], source: str = "127.0.0.1") -> tuple[int, str]:
    """Code and text of the answer to POST /rendezvous at this port, asked from the address `source`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(source, 0))
    connection.request("POST", "/rendezvous", json.dumps(body))
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_a_false_registration_with_a_high_attempt_replaces_no_task(make_job: MakeJob, tmp_path: Path) -> None:
    """Peers are known by where their names lead; here all lead to 127.0.0.1."""
    (tmp_path / "endless").touch()
    job, (chief, *workers) = start_group(make_job, "group")
    for running in (chief, *workers):
        running.wait_for(state="training", seenGeneration=1)
    for task in ("chief-0", "worker-0", "worker-1"):
        body = registration(job, task, attempt=10**9, generation=10**9)
        assert post(job.rendezvous_port, body, "127.0.0.2")[0] == 200
    step = chief.status()["step"]
    wait_until(lambda: chief.status()["step"] > step + 20, "the group trains on")
    # a member that is really replaced is let in all the same, and counts on where the others are
    os.kill(training_pid(workers[0]), signal.SIGKILL)
    assert workers[0].end() == 137
    job.start("worker-0", "group").wait_for(state="training", seenGeneration=2)
    assert "refused" not in chief.log.read_text()


def test_the_rendezvous_is_on_a_port_of_its_own(make_job: MakeJob, tmp_path: Path) -> None:
    (tmp_path / "endless").touch()
    job, (chief, *_) = start_group(make_job, "group")
    chief.wait_for(state="training")
    assert post(job.status_ports["chief-0"], registration(job, "worker-0"))[0] == 405
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://127.0.0.1:{job.rendezvous_port}/status", timeout=30)
    for change in ({"uid": "another"}, {"clusterHash": "another"}):
        _, said = post(job.rendezvous_port, registration(job, "worker-0", **change))
        assert '"refused"' in said
        assert job.uid not in said
        assert "hash-1" not in said
