"""Which errors of TensorFlow mean that a peer was lost. No TensorFlow here: they are told by name."""

from __future__ import annotations

PEER_ERRORS = ("UnavailableError", "DeadlineExceededError", "AbortedError", "CancelledError")
"""TensorFlow's errors that mean a lost peer wherever several tasks train together."""
PEER_PHRASES = ("collective", "coordination", "/job:", "heartbeat", "cluster")
"""Words in a FailedPreconditionError that comes from collectives or the coordinator, and not from the program."""
NCCL_ERRORS = ("InternalError", "UnknownError")
"""What becomes of an error of NCCL's (TensorFlow's nccl_manager.cc names it), which has none for a lost peer."""
SHARED_GPU = "NCCL: invalid usage"
"""What comes of two tasks on one GPU (seen on an H200, with NCCL 2.27)."""
NCCL_MISTAKES = ("invalid usage", "invalid argument")
"""Words of NCCL's for what will not pass, such as that."""


def is_peer_loss(error: BaseException, members: int) -> bool:
    """Whether `error` means that a peer was lost, where `members` tasks train together, so that this process is to
    start again in place."""
    kind = type(error).__name__
    if members == 1:
        return False
    if kind in NCCL_ERRORS:
        return "NCCL" in str(error) and not any(phrase in str(error) for phrase in NCCL_MISTAKES)
    return kind in PEER_ERRORS or (
        kind == "FailedPreconditionError" and any(phrase in str(error).lower() for phrase in PEER_PHRASES)
    )
