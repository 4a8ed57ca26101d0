# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.shutdown: who stops whom."""

import subprocess
import sys

import pytest

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.process.shutdown import Shutdown, stops_training


@pytest.mark.parametrize(
    ("peer", "strategy", "stops"),
    [
        ("worker-1", "MultiWorkerMirrored", True),
        ("chief-0", "MultiWorkerMirrored", True),
        ("evaluator-0", "MultiWorkerMirrored", False),
        ("ps-0", "ParameterServer", True),
        ("worker-1", "ParameterServer", False),
    ],
)
def test_a_preempted_peer_stops_training_that_needs_it(peer: str, strategy: str, stops: bool) -> None:
    assert stops_training({"peerPreempted": peer}, TRAITS[strategy]) is stops


def test_other_lines_stop_nothing() -> None:
    assert not stops_training({"generation": 3}, TRAITS["MultiWorkerMirrored"])


def test_the_signalled_task_ends_with_143_and_its_peers_with_75() -> None:
    shutdown = Shutdown(30)
    assert not shutdown.requested
    shutdown.tell_peer_preempted()
    assert (shutdown.requested, shutdown.exit_code) == (True, 75)
    shutdown.signalled = True
    assert shutdown.exit_code == 143


FORKS = """
import os, signal, time
from dtjob_trainer.process.shutdown import Shutdown
shutdown = Shutdown(30)
shutdown.install()
shutdown.training_begins()
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
os.kill(child, signal.SIGTERM)
_, status = os.waitpid(child, 0)
assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM, status
assert not shutdown.wait_signalled(0.2) and not shutdown.requested
"""


def test_sigterm_ends_a_forked_process_of_the_program_and_not_the_training() -> None:
    """As multiprocessing ends the workers of a PyDataset: neither may they stay, nor stop the training."""
    result = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 0, result.stderr


OWN_HANDLER = """
import os, signal, sys, time
from dtjob_trainer.process.shutdown import Shutdown
shutdown = Shutdown(float(sys.argv[1]))
shutdown.install()
within = sys.argv[2] == "in fit"
if within:
    shutdown.training_begins()
told = []
signal.signal(signal.SIGTERM, lambda number, frame: told.append(number))
os.kill(os.getpid(), signal.SIGTERM)
assert shutdown.wait_signalled(60) and shutdown.signalled
if within:
    shutdown.training_ends()
while not told:
    time.sleep(0.01)
if sys.argv[3] == "saves":
    print("saved")
    sys.exit(5)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("grace", "where", "then", "code", "said"),
    [("30", "in its own loop", "saves", 5, "saved\n"), ("30", "in fit", "saves", 5, "saved\n"),
     ("0.5", "in its own loop", "hangs", 143, "")],
)  # fmt: skip
def test_a_program_with_a_handler_of_its_own_has_the_grace_period_to_save(
    grace: str, where: str, then: str, code: int, said: str
) -> None:
    command = [sys.executable, "-c", OWN_HANDLER, grace, where, then]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (result.returncode, result.stdout) == (code, said), result.stderr


def test_a_program_without_one_ends_at_once_outside_of_training() -> None:
    code = OWN_HANDLER.replace("signal.signal(signal.SIGTERM, lambda", "print(lambda")
    command = [sys.executable, "-c", code, "30", "in its own loop", "saves"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert result.returncode == 143, result.stderr
