# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.peer_loss: which errors mean that a peer was lost."""

import pytest

from dtjob_trainer.process.peer_loss import is_peer_loss
from tests.unit.trainer.raised import of_tensorflow


@pytest.mark.parametrize(
    ("kind", "message", "lost"),
    [
        ("UnavailableError", "Collective ops is aborted by: …", True),
        ("DeadlineExceededError", "CoordinationService/Heartbeat", True),
        ("AbortedError", "", True),
        ("CancelledError", "", True),
        ("FailedPreconditionError", "the coordination agent is in error", True),
        ("FailedPreconditionError", "Table not initialized.", False),
        ("InvalidArgumentError", "Collective …", False),
        ("ResourceExhaustedError", "OOM", False),
        ("InternalError", "NCCL: unhandled system error. Set NCCL_DEBUG=WARN for detail.", True),
        ("UnknownError", "Error invoking NCCL: remote process exited or there was a network error", True),
        ("InternalError", "Barrier failed because: … Task /job:worker/replica:0/task:1 heartbeat timeout.", True),
        ("InternalError", "NCCL: invalid usage. Set NCCL_DEBUG=WARN for detail.", False),
        ("InternalError", "cudaSetDevice() on GPU:0 failed. Status: uncorrectable ECC error encountered", False),
        ("ValueError", "", False),
    ],
)
def test_each_error_is_a_peer_loss_only_in_a_group(kind: str, message: str, lost: bool) -> None:
    error = of_tensorflow(type(kind, (Exception,), {})(message))
    assert is_peer_loss(error, members=3) is lost
    assert not is_peer_loss(error, members=1)


def test_an_error_of_the_programs_own_is_no_peer_loss_whatever_its_class_is_called() -> None:
    """A class of TensorFlow is no evidence either: a program may raise one over its database."""
    for own in (type("UnavailableError", (Exception,), {}), type("AbortedError", (OSError,), {})):
        with pytest.raises(own) as raised:
            raise own("my database is away, says the coordination service")
        assert not is_peer_loss(raised.value, members=3)


def test_an_error_of_tensorflow_that_speaks_of_the_group_needs_no_frame_of_tensorflow() -> None:
    """Keras leaves TensorFlow's frames out, if a layer is called eagerly."""
    kind = type("UnavailableError", (Exception,), {"__module__": "tensorflow.python.framework.errors_impl"})
    assert is_peer_loss(kind("Collective ops is aborted by: …"), members=3)
    assert not is_peer_loss(kind("my database is away"), members=3)
    assert not is_peer_loss(type("UnavailableError", (Exception,), {})("Collective ops is aborted by: …"), members=3)
