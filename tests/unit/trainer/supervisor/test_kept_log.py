# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.kept_log: what a container printed stays beside its checkpoints, and is passed on."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dtjob_trainer.contract.kept_logs import MOST_ATTEMPTS, kept_name
from dtjob_trainer.supervisor.kept_log import MOST_BYTES

SUPERVISOR = """
import os, subprocess, sys, threading
from dtjob_trainer.contract.task import Task
from dtjob_trainer.supervisor import kept_log
kept = kept_log.keep_log(Task.from_environment(os.environ))
print("supervisor begins", flush=True)
subprocess.run([sys.executable, "-c", sys.argv[1]])
if kept:
    kept.end()
os._exit(0)
"""


def supervised(program: str, directory: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A process that keeps the log of the chief task while a child runs this program."""
    task = {"DTJOB_ROLE": "chief", "DTJOB_UID": "0123456789", "DTJOB_ATTEMPT": "2"}
    checkpoint = json.dumps({"directory": directory})
    return subprocess.run(
        [sys.executable, "-c", SUPERVISOR, program],
        env={"PATH": "", **task, "DTJOB_CHECKPOINT": checkpoint, **environ},
        capture_output=True,
        text=True,
        check=True,
    )


PRINTS = "import sys; print('a step'); print('a warning', file=sys.stderr)"


def test_output_of_processes_is_passed_on_and_kept(tmp_path: Path) -> None:
    ended = supervised(PRINTS, str(tmp_path))
    assert (ended.stdout, ended.stderr) == ("supervisor begins\na step\n", "a warning\n")
    kept = (tmp_path / "logs" / "attempt-2.01234567.log").read_text()
    assert sorted(kept.splitlines()) == ["a step", "a warning", "supervisor begins"]


def test_a_long_log_is_passed_on_whole_and_its_newest_part_is_kept(tmp_path: Path) -> None:
    ended = supervised("for n in range(300_000): print(n, 'x' * 10)", str(tmp_path))
    assert ended.stdout.count("\n") == 300_001
    kept = (tmp_path / "logs" / "attempt-2.01234567.log").read_text()
    assert len(kept) == MOST_BYTES
    assert ended.stdout.endswith(kept)


def test_only_the_newest_attempts_are_kept(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for attempt in range(20):
        (tmp_path / "logs" / kept_name(attempt, "of-another-job")).write_text("")
    supervised(PRINTS, str(tmp_path))
    names = {file.name for file in (tmp_path / "logs").iterdir()}
    assert len(names) == MOST_ATTEMPTS
    assert "attempt-2.01234567.log" in names


def test_a_directory_that_cannot_be_written_is_one_warning(tmp_path: Path) -> None:
    ended = supervised(PRINTS, str(tmp_path / "missing"))
    assert ended.stdout == "supervisor begins\na step\n"
    (warning,) = [line for line in ended.stderr.splitlines() if "cannot be kept" in line]
    assert "level=warning task=chief-0" in warning


@pytest.mark.parametrize(
    "environ",
    [{"DTJOB_ROLE": "worker", "DTJOB_INDEX": "1"}, {"DTJOB_PARENT": "1"}, {"DTJOB_CHECKPOINT": ""}],
)
def test_other_tasks_and_local_runs_keep_nothing_there(environ: dict[str, str], tmp_path: Path) -> None:
    assert supervised(PRINTS, str(tmp_path), **environ).stdout == "supervisor begins\na step\n"
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_hangs_delays_the_end_by_a_second_at_most() -> None:
    hangs = "import time; from dtjob_trainer.supervisor.kept_log import KeptLog\n"
    hangs += "kept = KeptLog(lambda text: time.sleep(3600), print, 0.01); print('a step', flush=True)\n"
    hangs += "time.sleep(0.1); kept.end(); import os; os._exit(0)"
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", hangs], capture_output=True, text=True, check=True)
    assert ended.stdout == "a step\n"
    assert time.monotonic() - began < 20


def test_a_training_process_finds_what_its_supervisor_gathers_for_a_bucket() -> None:
    copies = "import os, time; print('a step', flush=True); time.sleep(2)\n"
    copies += "print(open(os.environ['DTJOB_GATHERED_LOG']).read().upper())"
    ended = supervised(copies, "gs://bucket/digits")
    assert ended.stdout == "supervisor begins\na step\nSUPERVISOR BEGINS\nA STEP\n\n"
