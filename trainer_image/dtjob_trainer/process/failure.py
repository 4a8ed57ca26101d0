# SPDX-License-Identifier: Apache-2.0
"""Describes the exception that ends a training process: its class, one line, and whether a restart may help."""

import contextlib
import errno
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dtjob_trainer.errors import CheckpointError, MissingDeviceError, TrainerError
from dtjob_trainer.process.origin import is_of_tensorflows_class, is_raised_by_tensorflow, line_of_argparse, location_of
from dtjob_trainer.process.peer_loss import NCCL_ERRORS, SHARED_GPU

LONGEST_LINE = 200
"""Characters. The line goes into a job's status, and into the last 2 KiB of a log, which the kubelet keeps. The log has
the whole message."""
LONGEST_OF_OURS = 400
"""Characters of an error of the trainer's own, or with notes of the trainer. What to write instead is at its end."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NO_NEWS = re.compile(
    r'Exception encountered when calling |Graph execution error:|Detected at node |\s*File "|<stack traces unavailable>'
    r"|\d+ root error\(s\) found"
)
"""Lines that Keras and TensorFlow print before the line that says what is wrong."""
_CONVERTED = re.compile(r"\s*in user code:\n\n(?:    .*\n)+\n\s*(?:\w+: )?")
"""What AutoGraph puts before the message of an error in a `tf.function`: a traceback and the class of the error."""
_AROUND = re.compile(
    r"^\{\{function_node [^}]*\}\}\s*|^\(0\) [A-Z_]+:\s*|\s*\[Op:\w+\](?: name:.*)?$"
    r"|Failed to get element from worker \S+: (?:Failed to get [\w ]+(?:, with a nonretryable error)?: )*"
    r"| for '\{\{node [^']*'"
    r"|Error in user-defined function passed to \S+ transformation with iterator: \S+: "
)
"""The place in its graphs that TensorFlow adds to a message, and which data worker was asked."""
_IN_PYTHON = re.compile(r"(\w+): (?:\[Errno (\d+)\])?")
"""How a line begins that is about an exception in Python code called by steps or data."""
_OF_PYTHON = re.compile(r"(\w+(?:Error|Exception)): ")
"""How a line begins that is about an exception in Python code, with the class of the exception."""
_SHAPES = re.compile(r"\b([Ss]hapes?|[Dd]imensions?|[Rr]ank|axis|incompatible)\b")
ABOUT_SHAPES = ("ValueError", "InvalidArgumentError")

PASSING_KINDS = (ConnectionError, TimeoutError, socket.gaierror, MissingDeviceError)
PASSING_IN_TENSORFLOW = frozenset({"UnavailableError", "DeadlineExceededError", "AbortedError", "CancelledError"})
"""Such errors of TensorFlow, if its own code raises them. A program may raise one over its own database."""
PASSING_NAMES = frozenset({"URLError", "ConnectTimeout", "ReadTimeout", "ConnectionError"})
"""Such errors of HTTP clients. They are known by name, because nothing here imports those."""
PASSING_IN_PYTHON = PASSING_NAMES | {
    *("ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError", "BrokenPipeError", "TimeoutError"),
    "gaierror",
}
"""Such errors of Python, by the names that TensorFlow gives them. If data raises one, it becomes an UnknownError."""
PASSING_ERRNOS = frozenset({
    *(errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
    *(errno.ETIMEDOUT, errno.EREMOTEIO),
})  # fmt: skip
"""Errors of a network file system while its server is away."""
FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a file system that is full."""
_OF_A_GPU = re.compile(r"\bCUDA_ERROR_|\bcuda[A-Z]\w*\(\)|\buncorrectable ECC\b")
"""Texts of TensorFlow for a GPU that is broken or in use. Another GPU, or the same one later, may work."""
_OUTSIDE_STEPS = re.compile(
    r"DistributedVariable\.handle is not available outside the replica context"
    r"|'NoneType' object has no attribute 'merge_call'"
    r"|apply_gradients\(\) cannot be called in cross-replica context"
    r"|SyncOnReadVariable does not support `assign_\w+` in cross-replica context"
)
"""What TensorFlow, Keras 3 and tf_keras say of a training step, or a metric's update, that no `strategy.run` runs."""
OWN_STEPS = (
    "a training step or metric of the program's own runs outside of strategy.run, so nothing distributes it; call "
    "strategy.run(step, …) or dtjob_trainer.train(…), or set strategy: Default to train in one process"
)
ONE_GPU_EACH = "NCCL wants a GPU of its own for each task: where tasks share one, communication must be Ring"
NOT_MOUNTED = "data workers read the files: mount their volume in replicaSpecs.data.template too"
STATEFUL = "set stateful=False, use layers of Keras 3, or set strategy: Default to train in one process"
PASSING_ANSWERS = (408, 425, 429, 500, 502, 503, 504)
"""HTTP status codes of a server that is busy or away."""


def note_advice(error: BaseException, shapes: Callable[[], str], members: int) -> None:
    """Add to `error` what its own message does not tell: what to write instead, or which shapes do not fit.

    - shapes: the shapes of the model and of its data, for an error about shapes.
    - members: how many tasks train together.
    """
    kind, text, advice = type(error).__name__, str(error), ""
    if is_of_own_steps(error):
        advice = OWN_STEPS
    elif isinstance(error, ValueError) and text.startswith("Stateful RNNs"):
        advice = STATEFUL
    elif members > 1 and kind in NCCL_ERRORS and SHARED_GPU in text:
        advice = ONE_GPU_EACH
    elif kind in ("NotFoundError", "PermissionDeniedError") and "Failed to get element from worker" in text:
        advice = NOT_MOUNTED
    elif kind in ABOUT_SHAPES and _SHAPES.search(text):
        with contextlib.suppress(Exception):  # no model may make this hide the error
            advice = shapes()
    if advice:
        error.add_note(advice)


def is_of_own_steps(error: BaseException) -> bool:
    """Whether `error` is one of a training step that the program runs outside of `strategy.run`. No restart helps."""
    return isinstance(error, ValueError | AttributeError | RuntimeError) and bool(_OUTSIDE_STEPS.search(str(error)))


def in_one_line(error: BaseException) -> str:
    """The class of `error`, and the line of its message that says what is wrong, if there is one."""
    kind, line = _told(error)
    return f"{kind}: {line}" if line else kind


def _told(error: BaseException) -> tuple[str, str]:
    """The class and the line to tell. If TensorFlow made an UnknownError of an error in a data function, they are those
    of that error.

    The class is the nearest base that is not private (as NumPy's `_ArrayMemoryError` is).
    """
    kind = next(one.__name__ for one in type(error).__mro__ if not one.__name__.startswith("_"))
    line = line_of(error)
    within = _OF_PYTHON.match(line) if kind == "UnknownError" else None
    return (within[1], line[within.end() :]) if within else (kind, line)


def line_of(error: BaseException) -> str:
    """The first line of the message that says more than the place, and then the notes. Empty if the message is empty.

    A line that is too long is cut before its notes: they say what to write instead.
    """
    if is_of_own_steps(error):
        return OWN_STEPS
    if isinstance(error, SystemExit) and (of_argparse := line_of_argparse(error)):
        return _cut(of_argparse, LONGEST_LINE)
    text = _CONVERTED.sub("", _COLOUR.sub("", str(error)))
    lines = [line for each in text.splitlines() if (line := _AROUND.sub("", each.strip()))]
    said = next((line for line in lines if not _NO_NEWS.match(line)), lines[0] if lines else "")
    notes = "; ".join(getattr(error, "__notes__", ()))
    noted = f" ({notes})" if notes and "\n" not in notes else ""
    longest = LONGEST_OF_OURS if noted or isinstance(error, TrainerError) else LONGEST_LINE
    return _cut(_cut(said, max(longest - len(noted), longest // 2)) + noted, longest)


def described(error: BaseException, begun_in: Path, *, trained: bool = False) -> dict[str, Any]:
    """The key `exception` of a report (contract.md).

    - begun_in: the directory in which the program was started
    - trained: whether all training that the program has begun was done
    """
    kind, line = _told(error)
    told: dict[str, Any] = {"type": kind, "message": line}
    if location := location_of(error, begun_in):
        told["location"] = location
    permanent = is_of_own_steps(error) or (isinstance(error, TrainerError) and error.permanent)
    passes = may_pass(error)
    flags = {
        "trained": trained,
        "transient": passes,
        "exhausted": any(map(_is_exhausted, _chain(error))),
        "permanent": permanent and not passes,
    }
    return told | {name: True for name, is_so in flags.items() if is_so}


def _is_exhausted(error: BaseException) -> bool:
    """Whether `error` says that memory or storage is used up, or cannot be used."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in FULL_ERRNOS):
        return True
    if isinstance(error, CheckpointError):
        return not error.permanent
    return type(error).__name__ == "ResourceExhaustedError" and is_of_tensorflows_class(error)


def may_pass(error: BaseException) -> bool:
    """Whether `error`, or an error that led to it, is about connections or storage that may come back by themselves."""
    return any(map(_passes, _chain(error)))


def _passes(error: BaseException) -> bool:
    if type(error).__name__ in ("InternalError", "UnknownError") and _OF_A_GPU.search(str(error)):
        return True
    python = _IN_PYTHON.match(line_of(error)) if type(error).__name__ == "UnknownError" else None
    if python is not None and python[1] not in PASSING_IN_TENSORFLOW:
        return python[1] in PASSING_IN_PYTHON or int(python[2] or 0) in PASSING_ERRNOS
    name = type(error).__name__ if python is None else python[1]
    if name in PASSING_IN_TENSORFLOW:
        return is_raised_by_tensorflow(error)
    if isinstance(error, PASSING_KINDS) or name in PASSING_NAMES:
        return True
    if type(error).__name__ == "HTTPError":
        return getattr(error, "code", 0) in PASSING_ANSWERS
    return isinstance(error, OSError) and error.errno in PASSING_ERRNOS


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception, and those that Python prints above it."""
    one: BaseException | None = error
    seen: set[int] = set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _cut(line: str, longest: int) -> str:
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
