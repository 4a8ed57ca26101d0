# SPDX-License-Identifier: Apache-2.0
"""The logs beside the checkpoints, of real supervisors and training processes, as in pods."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob.local.processes.addresses import free_ports
from tests.trainer.support.supervisors import LAUNCHER, MakeJob, wait_until

PROGRAM = """
print("a step")
raise KeyError("label")
"""


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_the_log_of_a_failed_attempt_stays_beside_the_checkpoints(tmp_path: Path, scheme: str) -> None:
    """gs:// goes the same way through tf.io.gfile; file:// is the scheme that is here without a network."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "kept").mkdir()
    task = {"DTJOB_ROLE": "chief", "DTJOB_INDEX": "0", "DTJOB_UID": "0123456789", "DTJOB_ATTEMPT": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "dtjob_trainer", "train.py"],
        env={
            **os.environ,
            **task,
            "DTJOB_INTEGRATION": "None",
            "DTJOB_STATUS_PORT": str(free_ports(1)[0]),
            "DTJOB_CHECKPOINT": json.dumps({"directory": f"{scheme}{tmp_path / 'kept'}"}),
        },
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ended.returncode == 1
    kept = (tmp_path / "kept" / "logs" / "chief-0.1.01234567.log").read_text()
    assert "a step" in ended.stdout
    assert "KeyError: 'label'" in ended.stderr
    assert "chief-0.1 | a step\n" in kept
    assert "KeyError: 'label'" in kept
    supervisors = [line for line in ended.stderr.splitlines() if "ending with 1" in line]
    assert len(supervisors) == 1
    assert scheme or supervisors[0] in kept


KEEPING = """
import os
from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor import kept_log
kept_log.EVERY_SECONDS = 0.1
kept = kept_log.keep_log(Task.from_environment(os.environ))
""" + LAUNCHER.replace("os.environ), task.parent)", "os.environ, None, kept.take), None, kept)")


def test_the_last_lines_of_a_worker_stay_when_its_pod_is_killed_at_once(make_job: MakeJob, tmp_path: Path) -> None:
    """The worker's supervisor is killed with the rest, so it can send nothing more."""
    (tmp_path / "endless").touch()
    job = make_job("MultiWorkerMirrored", chief=1, worker=1)
    job.launcher = KEEPING
    environ = {"DTJOB_PARENT": "", "DTJOB_CHECKPOINT": json.dumps({"directory": str(tmp_path)})}
    chief, worker = (job.start(task, "group", environ=environ) for task in ("chief-0", "worker-0"))
    log = tmp_path / "logs" / "chief-0.0.uid-1.log"

    def said(pod: str) -> list[str]:
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if line.startswith(f"{pod} | ")]

    wait_until(lambda: said("worker-0.0"), "the lines of the worker")
    worker.process.kill()
    replacement = job.start("worker-0", "group", environ=environ)
    replacement.wait_for(state="training", seenGeneration=2)
    wait_until(lambda: said("worker-0.1"), "the lines of the next worker")
    (tmp_path / "endless").unlink()
    assert [running.end() for running in (chief, replacement)] == [0, 0]
    assert [line.partition("message=")[2] for line in said("worker-0.0")] == ['"go: generation 1"']
    assert 'message="go: generation 2"' in said("worker-0.1")[0]
    assert any("restarting in place (1)" in line for line in said("chief-0.0"))
