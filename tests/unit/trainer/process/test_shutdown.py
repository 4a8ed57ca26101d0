"""dtjob_trainer.process.shutdown and .program: who stops whom, and whose failure an exit is."""

import pytest

from dtjob_trainer.contract.strategy import TRAITS
from dtjob_trainer.process.shutdown import Shutdown, stops_training
from dtjob_trainer.run import is_peer_loss


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


@pytest.mark.parametrize(
    ("error", "message", "lost"),
    [
        ("UnavailableError", "Collective ops is aborted by: …", True),
        ("DeadlineExceededError", "CoordinationService/Heartbeat", True),
        ("AbortedError", "", True),
        ("CancelledError", "", True),
        ("FailedPreconditionError", "the coordination agent is in error", True),
        ("FailedPreconditionError", "Table not initialized.", False),
        ("InvalidArgumentError", "Collective …", False),
        ("ResourceExhaustedError", "OOM", False),
        ("ValueError", "", False),
    ],
)
def test_whose_failure_an_error_is(error: str, message: str, lost: bool) -> None:
    assert is_peer_loss(error, message) is lost
