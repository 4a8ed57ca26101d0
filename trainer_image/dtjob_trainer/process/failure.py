"""What the supervisor is told of the exception that ends a training process: its kind, a line, whether it may pass."""

from __future__ import annotations

import contextlib
import errno
import re
import socket
from collections.abc import Callable, Iterator
from typing import Any

from dtjob_trainer.errors import MissingDeviceError
from dtjob_trainer.process.peer_loss import NCCL_ERRORS, SHARED_GPU

LONGEST_LINE = 400
"""Characters: the line goes into a job's status, and into the 2 KiB of a log's end that the kubelet keeps."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NO_NEWS = re.compile(
    r'Exception encountered when calling |Graph execution error:|Detected at node |\s*File "|<stack traces unavailable>'
    r"|\d+ root error\(s\) found"
)
"""Lines that Keras and TensorFlow put before the one that says what is wrong."""
_CONVERTED = re.compile(r"\s*in user code:\n\n(?:    .*\n)+\n\s*(?:\w+: )?")
"""What AutoGraph puts before the message of an error within a `tf.function`: the lines that led there, and its kind."""
_AROUND = re.compile(r"^\{\{function_node [^}]*\}\}\s*|^\(0\) [A-Z_]+:\s*|\s*\[Op:\w+\](?: name:.*)?$")
"""Where in its graphs TensorFlow has found it."""
_IN_PYTHON = re.compile(r"(\w+): (?:\[Errno (\d+)\])?")
"""How the line begins that tells an exception of Python which steps or data have called."""
_SHAPES = re.compile(r"\b([Ss]hapes?|[Dd]imensions?|[Rr]ank|axis|incompatible)\b")
ABOUT_SHAPES = ("ValueError", "InvalidArgumentError")

PASSING_KINDS = (ConnectionError, TimeoutError, socket.gaierror, MissingDeviceError)
PASSING_NAMES = frozenset({
    *("UnavailableError", "DeadlineExceededError", "AbortedError", "CancelledError"),
    *("URLError", "ConnectTimeout", "ReadTimeout", "ConnectionError"),
})  # fmt: skip
"""TensorFlow's and HTTP clients' errors of that kind, which are told by name: nothing here imports those."""
PASSING_IN_PYTHON = PASSING_NAMES | {
    *("ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError", "BrokenPipeError", "TimeoutError"),
    "gaierror",
}
"""Those of Python, as TensorFlow names them where data has called it: it makes an UnknownError of them."""
PASSING_ERRNOS = frozenset({
    *(errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
    *(errno.ETIMEDOUT, errno.EREMOTEIO),
})  # fmt: skip
"""What a file system over the network says while its server is away."""
_OF_A_GPU = re.compile(r"\bCUDA_ERROR_|\bcuda[A-Z]\w*\(\)|\buncorrectable ECC\b")
"""How TensorFlow tells of a GPU that is broken or taken: another one, or this one later, may do."""
PASSING_ANSWERS = (408, 425, 429, 500, 502, 503, 504)
"""HTTP's, of a server that is busy or away."""


def note_shapes(error: BaseException, shapes: Callable[[], str]) -> None:
    """Have an error about shapes tell those of the model and of its data, which its own words may leave out."""
    if type(error).__name__ not in ABOUT_SHAPES or not _SHAPES.search(str(error)):
        return
    with contextlib.suppress(Exception):  # whatever the model is, this must not hide the error
        if told := shapes():
            error.add_note(told)


def note_shared_gpus(error: BaseException) -> None:
    """Have NCCL's words for two tasks on one GPU, which name neither, say what to do; of a job of several tasks."""
    if type(error).__name__ in NCCL_ERRORS and SHARED_GPU in str(error):
        error.add_note("NCCL wants a GPU of its own for each task: where tasks share one, communication must be Ring")


def in_one_line(error: BaseException) -> str:
    """The kind of `error` and the line of its message that says what is wrong, if there is one."""
    kind, line = kind_of(error), line_of(error)
    return f"{kind}: {line}" if line else kind


def kind_of(error: BaseException) -> str:
    """The class of `error`, or the nearest above it that is no private one (NumPy's `_ArrayMemoryError`)."""
    return next(one.__name__ for one in type(error).__mro__ if not one.__name__.startswith("_"))


def line_of(error: BaseException) -> str:
    """The first line of the message that is not only about where; empty where it says nothing."""
    text = _CONVERTED.sub("", _COLOUR.sub("", str(error)))
    lines = [line for each in text.splitlines() if (line := _AROUND.sub("", each.strip()))]
    said = next((line for line in lines if not _NO_NEWS.match(line)), lines[0] if lines else "")
    notes = "; ".join(getattr(error, "__notes__", ()))
    return _cut(said + (f" ({notes})" if notes and "\n" not in notes else ""))


def described(error: BaseException) -> dict[str, Any]:
    """The key `exception` of a report (docs/contract.md)."""
    told: dict[str, Any] = {"type": kind_of(error), "message": line_of(error)}
    return {**told, "transient": True} if may_pass(error) else told


def may_pass(error: BaseException) -> bool:
    """Whether `error`, or what it came from, is one of connections or storage that come back by themselves."""
    return any(_passes(one) for one in _chain(error))


def _passes(error: BaseException) -> bool:
    if type(error).__name__ in ("InternalError", "UnknownError") and _OF_A_GPU.search(str(error)):
        return True
    python = _IN_PYTHON.match(line_of(error)) if type(error).__name__ == "UnknownError" else None
    if python is not None:
        return python[1] in PASSING_IN_PYTHON or int(python[2] or 0) in PASSING_ERRNOS
    if isinstance(error, PASSING_KINDS) or type(error).__name__ in PASSING_NAMES:
        return True
    if type(error).__name__ == "HTTPError":
        return getattr(error, "code", 0) in PASSING_ANSWERS
    return isinstance(error, OSError) and error.errno in PASSING_ERRNOS


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that Python would show above it."""
    one: BaseException | None = error
    seen: set[int] = set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
