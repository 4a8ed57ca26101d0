# SPDX-License-Identifier: Apache-2.0
"""Which errors of TensorFlow mean that a peer was lost. They are known by name: no TensorFlow here.

The name of a class is not enough: a program, or a client of its database, may raise an `UnavailableError` of its own.
TensorFlow alone notices a lost peer, in an operation or in its coordination service. So one of these must be true:

- TensorFlow's code has raised the error, as its traceback shows.
- The error is one of TensorFlow's classes and speaks of the group. Keras leaves TensorFlow's frames out if an operation
  fails in a layer of the program's own that is called eagerly.

An error that TensorFlow raises over something else, such as a service of its data, looks the same. The supervisor
counts such restarts: three of them without a new step end the container (supervisor/restart.py).
"""

from dtjob_trainer.process.origin import is_of_tensorflows_class, is_raised_by_tensorflow

PEER_ERRORS = ("UnavailableError", "DeadlineExceededError", "AbortedError", "CancelledError")
"""TensorFlow's errors that mean a lost peer if several tasks train together."""
PEER_PHRASES = ("collective", "coordination", "/job:", "heartbeat", "cluster")
"""Words in a FailedPreconditionError from collectives or the coordinator. One from the program has none of them."""
GROUP_PHRASES = ("collective", "coordination service", "coordinationservice", "/job:", "heartbeat")
"""Words of TensorFlow's errors over its group."""
CONNECTING_PHRASES = ("CoordinationService", "heartbeat timeout")
"""Words in an InternalError of tasks that connect to each other, if one of them is lost meanwhile."""
NCCL_ERRORS = ("InternalError", "UnknownError")
"""What TensorFlow makes of an error of NCCL (nccl_manager.cc names it). NCCL has no error for a lost peer."""
SHARED_GPU = "NCCL: invalid usage"
"""NCCL's error for two tasks on one GPU (seen on an H200, with NCCL 2.27)."""
NCCL_MISTAKES = ("invalid usage", "invalid argument")
"""Words of NCCL for mistakes that do not pass by themselves."""


def is_peer_loss(error: BaseException, members: int) -> bool:
    """Whether `error` means that a peer was lost, in a group of `members` tasks that train together.

    If so, this process must start again in place.
    """
    kind, text = type(error).__name__, str(error).lower()
    speaks_of_the_group = is_of_tensorflows_class(error) and any(phrase in text for phrase in GROUP_PHRASES)
    if members == 1 or not (is_raised_by_tensorflow(error) or speaks_of_the_group):
        return False
    if kind == "InternalError" and any(phrase in str(error) for phrase in CONNECTING_PHRASES):
        return True
    if kind in NCCL_ERRORS:
        return "NCCL" in str(error) and not any(phrase in str(error) for phrase in NCCL_MISTAKES)
    if kind == "FailedPreconditionError":
        return any(phrase in text for phrase in PEER_PHRASES)
    return kind in PEER_ERRORS
