# SPDX-License-Identifier: Apache-2.0
"""`dtjob run` imports TensorFlow once: supervisors forked from a launcher, which nothing depends on."""

import os
import signal
from pathlib import Path

import pytest

from tests.trainer.support.local_runs import LocalRun, manifest
from tests.trainer.support.supervisors import runs, wait_until

pytestmark = pytest.mark.timeout(300)

CHECKPOINT = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 20}
PROGRAM = {"entrypoint": "tests/trainer/programs/train.py", "args": ["--epochs=100000"]}


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A job of a chief, a worker and no end."""
    replicas = {"chief": {}, "worker": {}}
    options = {"program": PROGRAM, "checkpoint": CHECKPOINT, "replicaSpecs": replicas, "image": None}
    return manifest("digits.yaml", tmp_path / "job.yaml", 1, **options)


def test_tasks_share_their_imports_have_their_own_names_and_do_not_outlive_dtjob(endless: Path, tmp_path: Path) -> None:
    with LocalRun(endless, tmp_path) as run:
        statuses = run.wait_for_step(30)
        (launcher,) = launchers(run)
        processes = {name: (status["pid"], status["trainingPid"]) for name, status in statuses.items()}
        for task, (supervisor, training) in processes.items():
            assert memory_of(supervisor) == memory_of(training) == memory_of(launcher), "forked, not executed"
            assert (name_of(supervisor), name_of(training)) == (task, f"{task}:run")
            assert parent_of(supervisor) == run.process.pid
            assert parent_of(training) == supervisor
            assert command_of(supervisor)[1:4] == ["-m", "dtjob_trainer", PROGRAM["entrypoint"]]
            assert command_of(training)[1:4] == ["-m", "dtjob_trainer.run", PROGRAM["entrypoint"]]
        run.process.kill()
        run.end()
        run.wait_until_nothing_is_left()
        known = [launcher, *(pid for both in processes.values() for pid in both)]
        wait_until(lambda: not any(runs(pid) for pid in known), "the end of the launcher")
    saved = [int(path.stem.removeprefix("ckpt-")) for path in tmp_path.glob("*/run-1/checkpoints/ckpt-*.index")]
    assert max(saved) % CHECKPOINT["everySteps"] or max(saved) > 30, "the tasks saved before they ended"


def test_a_killed_launcher_is_not_missed(endless: Path, tmp_path: Path) -> None:
    with LocalRun(endless, tmp_path) as run:
        before = run.wait_for_step(1)
        (launcher,) = launchers(run)
        os.kill(launcher, signal.SIGKILL)
        os.kill(before["worker-0"]["pid"], signal.SIGKILL)
        after = run.wait_until(lambda now: now.get("worker-0", {}).get("attempt") == 1, "a new worker")
        assert memory_of(after["worker-0"]["pid"]) != memory_of(before["chief-0"]["pid"]), "executed"
        after = run.wait_for_step((before["chief-0"]["step"] or 0) + 30)
        assert after["chief-0"]["pid"] == before["chief-0"]["pid"]
        assert memory_of(after["chief-0"]["trainingPid"]) == memory_of(before["chief-0"]["pid"]), "by its own template"
        run.process.send_signal(signal.SIGINT)
        assert run.end()[0] == 130


def test_each_environment_has_imports_of_its_own(endless: Path, tmp_path: Path) -> None:
    spec = {"containers": [{"name": "tensorflow", "env": [{"name": "TF_CPP_MIN_LOG_LEVEL", "value": "1"}]}]}
    replicas = {"chief": {}, "worker": {"template": {"spec": spec}}}
    manifest("digits.yaml", endless, 1, program=PROGRAM, checkpoint=CHECKPOINT, replicaSpecs=replicas, image=None)
    with LocalRun(endless, tmp_path) as run:
        statuses = run.wait_for_step(1)
        assert len(launchers(run)) == 2
        chief, worker = (statuses[task]["trainingPid"] for task in ("chief-0", "worker-0"))
        assert memory_of(chief) != memory_of(worker)
        assert {memory_of(chief), memory_of(worker)} == {memory_of(pid) for pid in launchers(run)}
        for pid in launchers(run):
            assert ("TF_CPP_MIN_LOG_LEVEL=1" in variables_of(pid)) == (memory_of(pid) == memory_of(worker))
        known = launchers(run)
        run.process.send_signal(signal.SIGINT)
        assert run.end()[0] == 130
        assert not any(runs(launcher) for launcher in known)


def launchers(run: LocalRun) -> list[int]:
    children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
    return [pid for pid in map(int, children) if name_of(pid) == "dtjob-launcher"]


def name_of(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def command_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


def variables_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")


def parent_of(pid: int) -> int:
    return int(_stat(pid)[1])


def memory_of(pid: int) -> str:
    """Where the environment lies: in the same place for processes that were forked from one another only."""
    return _stat(pid)[47]


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
