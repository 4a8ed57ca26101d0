"""dtjob_trainer.run: whose failure an end is, and how it is told."""

import subprocess
import sys

import pytest

from dtjob_trainer.run import code_of_exit, exit_code, is_peer_loss


class UnavailableError(Exception):
    """Named as TensorFlow's."""


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
def test_is_peer_loss(error: str, message: str, lost: bool) -> None:
    assert is_peer_loss(error, message) is lost


@pytest.mark.parametrize(
    ("error", "members", "code"),
    [
        (UnavailableError("socket closed"), 3, 75),
        (UnavailableError("socket closed"), 1, 1),
        (ValueError("x"), 3, 1),
        (KeyboardInterrupt(), 3, 1),
    ],
)
def test_a_lost_peer_is_one_only_where_there_are_any(error: BaseException, members: int, code: int) -> None:
    assert exit_code(error, members) == code


@pytest.mark.parametrize(("code", "number", "said"), [(None, 0, ""), (0, 0, ""), (3, 3, ""), ("no", 1, "no\n")])
def test_a_program_may_leave_by_sys_exit(
    capsys: pytest.CaptureFixture[str], code: int | str | None, number: int, said: str
) -> None:
    assert code_of_exit(SystemExit(code)) == number
    assert capsys.readouterr().err == said


def test_without_an_entry_the_usage_is_told() -> None:
    result = subprocess.run([sys.executable, "-m", "dtjob_trainer.run"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "usage: python3 -m dtjob_trainer.run ENTRY [ARGS…]\n")
