# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.supervisor.kept_log: what a container printed stays beside its checkpoints, and is passed on."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dtjob_trainer.contract.kept_logs import MOST_ATTEMPTS
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
    kept = (tmp_path / "logs" / "chief-0.2.01234567.log").read_text()
    assert sorted(kept.splitlines()) == [
        "chief-0.2 | a step", "chief-0.2 | a warning", "chief-0.2 | supervisor begins"
    ]  # fmt: skip


def test_a_long_log_is_passed_on_whole_and_its_newest_part_is_kept(tmp_path: Path) -> None:
    ended = supervised("for n in range(300_000): print(n, 'x' * 10)", str(tmp_path))
    assert ended.stdout.count("\n") == 300_001
    kept = (tmp_path / "logs" / "chief-0.2.01234567.log").read_text()
    assert MOST_BYTES - 100 < len(kept) <= MOST_BYTES
    lines = [line.removeprefix("chief-0.2 | ") for line in kept.splitlines()]
    assert ended.stdout.splitlines()[-len(lines) :] == lines


def test_only_the_newest_attempts_are_kept(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for attempt in range(20):
        (tmp_path / "logs" / f"chief-0.{attempt}.of-another.log").write_text("")
    (tmp_path / "logs" / "evaluator-0.0.01234567.log").write_text("")
    supervised(PRINTS, str(tmp_path))
    names = {file.name for file in (tmp_path / "logs").iterdir()}
    assert len(names) == MOST_ATTEMPTS + 1
    assert {"chief-0.2.01234567.log", "evaluator-0.0.01234567.log"} <= names


def test_a_directory_that_cannot_be_written_is_one_warning(tmp_path: Path) -> None:
    ended = supervised(PRINTS, str(tmp_path / "missing"))
    assert ended.stdout == "supervisor begins\na step\n"
    (warning,) = [line for line in ended.stderr.splitlines() if "cannot be kept" in line]
    assert "level=warning task=chief-0" in warning


def test_the_evaluator_keeps_a_log_of_its_own(tmp_path: Path) -> None:
    supervised(PRINTS, str(tmp_path), DTJOB_ROLE="evaluator")
    assert "evaluator-0.2 | a step\n" in (tmp_path / "logs" / "evaluator-0.2.01234567.log").read_text()


@pytest.mark.parametrize(
    "environ",
    [{"DTJOB_ROLE": "worker", "DTJOB_INDEX": "1"}, {"DTJOB_PARENT": "1"}, {"DTJOB_CHECKPOINT": ""}],
)
def test_tasks_without_a_chief_and_local_runs_keep_nothing_there(environ: dict[str, str], tmp_path: Path) -> None:
    assert supervised(PRINTS, str(tmp_path), **environ).stdout == "supervisor begins\na step\n"
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_hangs_delays_the_end_by_a_second_at_most() -> None:
    hangs = "import time; from dtjob_trainer.supervisor.kept_log import KeptLog\n"
    hangs += "from dtjob_trainer.rendezvous.tails import Tails\n"
    hangs += "kept = KeptLog('a.0', Tails('', 1), lambda text: time.sleep(3600), print, 0.01)\n"
    hangs += "print('a step', flush=True)\n"
    hangs += "time.sleep(0.1); kept.end(); import os; os._exit(0)"
    began = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", hangs], capture_output=True, text=True, check=True)
    assert ended.stdout == "a step\n"
    assert time.monotonic() - began < 20


def test_a_training_process_finds_what_its_supervisor_gathers_for_a_bucket() -> None:
    copies = "import os, time; print('a step', flush=True); time.sleep(2)\n"
    copies += "print(open(os.environ['DTJOB_GATHERED_LOG']).read().upper())"
    ended = supervised(copies, "gs://bucket/digits")
    assert ended.stdout == ("supervisor begins\na step\nCHIEF-0.2 | SUPERVISOR BEGINS\nCHIEF-0.2 | A STEP\n\n")


SENDER = """
import sys, time
from dtjob_trainer.supervisor.kept_log import KeptLog
from dtjob_trainer.rendezvous.tails import Tails
def fail(text):
    tried.append(text)
    raise OSError("the chief task does not answer")
tried = []
kept = KeptLog("worker-1.0", Tails("", 1), fail, lambda _: None, 0.01, 200)
print("a line that comes in two parts: ", end="", flush=True)
time.sleep(0.2)
print("the second", flush=True)
time.sleep(0.2)
print("x" * 500, flush=True)
while len(tried) < 20:
    time.sleep(0.01)
kept.end()
sys.stderr.write(tried[-1].decode())
"""


def test_lines_that_could_not_be_sent_are_sent_again_whole() -> None:
    """The end of a line is kept that is longer than what is kept."""
    ended = subprocess.run([sys.executable, "-c", SENDER], capture_output=True, text=True, check=True)
    assert "a line that comes in two parts: the second\n" in ended.stdout
    assert ended.stderr == f"worker-1.0 | {'x' * 186}\n"
