"""Processes that are forked where others would be executed: asked for on a socket, and then as if started by exec.

A request is one message (docs/contract.md): JSON, and descriptors beside it. The answer is the new process' id. The new
process is nobody's child for a moment, so that whoever asked adopts it (it is a subreaper) and waits for it as for any
other of its children.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from dtjob_trainer.contract.parent import die_with_parent

LONGEST_REQUEST = 1 << 20
MOST_DESCRIPTORS = 8
ROOM_VARIABLE = "DTJOB_ROOM"
"""A long value of this variable, and a long last argument, are room in which forked processes show their own."""
_PR_SET_NAME = 15
_NAME_BYTES = 15
_SHOWN_FIRST = ("DTJOB_UID", "DTJOB_ROLE", "DTJOB_INDEX", "DTJOB_ATTEMPT", "DTJOB_CLUSTER_FILE", "DTJOB_STATUS_PORT")


@dataclass(frozen=True)
class Request:
    """What a forked process is to be."""

    module: str
    """As after `python3 -m`."""
    arguments: Sequence[str]
    environ: Mapping[str, str]
    descriptors: Sequence[str] = ()
    """For each descriptor beside the message the variable that names it, or the number that it gets (1, 2)."""
    directory: str | None = None
    """The working directory; None: that of the process that is copied."""

    def to_bytes(self) -> bytes:
        """The message."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def to_import(cls, module: str) -> Request:
        """For no process: that the one which forks import `module`, for those that will be forked later."""
        return cls("", [module], {})

    @classmethod
    def from_bytes(cls, message: bytes) -> Request:
        """Read a message. Raises ValueError or TypeError where it is none."""
        return cls(**json.loads(message))


Begin = Callable[[Request], NoReturn]
"""Does what the request wants, as the whole of a new process."""


@dataclass
class Room:
    """Memory of this process that /proc shows as its arguments and environment."""

    arguments: tuple[int, int] = (0, 0)
    """Address and length in bytes."""
    variables: tuple[int, int] = field(default=(0, 0))

    @classmethod
    def find(cls) -> Room:
        """The room that this process was started with; none where no variable makes it."""
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        first_argument, end, first_variable, last = (int(number) for number in fields[45:49])
        environ = ctypes.string_at(first_variable, last - first_variable)
        name = f"{ROOM_VARIABLE}=".encode()
        for item in environ.split(b"\0"):
            if item.startswith(name):
                return cls((first_argument, end - first_argument), (first_variable + environ.index(item), len(item)))
        return cls()

    def show(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Have /proc show `command`, and of `environ` what tells whose process this is, as far as there is room."""
        _write(self.arguments, command)
        ours = {name: value for name, value in environ.items() if name.startswith("DTJOB_")}
        names = [*(name for name in _SHOWN_FIRST if name in ours), *(n for n in ours if n not in _SHOWN_FIRST)]
        _write(self.variables, [f"{name}={ours[name]}" for name in names])


_room = Room()
_at_start = dict(os.environ)
_set_by_imports: dict[str, str] | None = None


def take_room() -> None:
    """Take the room that this process was started with, for the processes that will be forked from it."""
    global _room
    with contextlib.suppress(OSError, ValueError):
        _room = Room.find()
    os.environ.pop(ROOM_VARIABLE, None)


def serve(asked: socket.socket, parent: int, name: str, begin: Begin) -> NoReturn:
    """Answer requests for processes until the other end of `asked` is gone. They become children of `parent`.

    Only a process that has one thread may do this. Its first message is its own id: from then on it answers.
    """
    set_name(name)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # whoever asks ends it, by closing the socket
    _close_all_but(asked.fileno())
    _note_environment()
    gc.freeze()  # what is shared is never garbage: looking at it would copy its pages
    asked.send(str(os.getpid()).encode())
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(asked, LONGEST_REQUEST, MOST_DESCRIPTORS)
        except ConnectionError:
            os._exit(0)
        if not message:
            os._exit(0)
        if _imported(message):
            continue
        if is_orphan(parent):
            _become(message, descriptors, asked, begin)
        for descriptor in descriptors:
            os.close(descriptor)


def is_orphan(parent: int) -> bool:
    """Fork a process whose parent ends at once, so that `parent` adopts it: True in it, False in this one.

    It is in a session of its own, and dies (SIGKILL) with its parent.
    """
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return False
    between = os.getpid()
    if os.fork():
        os._exit(0)
    os.setsid()
    while os.getppid() == between:
        os.sched_yield()
    die_with_parent(signal.SIGKILL, parent)
    return True


def set_name(name: str) -> None:
    """The name that `ps` and `top` show, of which the first 15 bytes count."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:_NAME_BYTES], 0, 0, 0)


def task_name(environ: Mapping[str, str]) -> str:
    """A process' task in a word: `worker-1`."""
    return f"{environ.get('DTJOB_ROLE', 'program')}-{environ.get('DTJOB_INDEX', '0')}"


def _become(message: bytes, descriptors: Sequence[int], asked: socket.socket, begin: Begin) -> NoReturn:
    """Be what the request wants, as if started by exec, and answer it."""
    try:
        request = Request.from_bytes(message)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _room.show([sys.executable, "-m", request.module, *request.arguments], request.environ)
        if request.directory is not None:
            if sys.path and sys.path[0] == str(Path.cwd()):
                sys.path[0] = request.directory  # as `python3 -m` has it
            os.chdir(request.directory)
        os.environ.clear()
        os.environ.update({**request.environ, **(_set_by_imports or {})})
        for name, descriptor in zip(request.descriptors, descriptors, strict=True):
            if not name.isdecimal():
                os.environ[name] = str(descriptor)
                continue
            os.dup2(descriptor, int(name))
            os.close(descriptor)
        with asked:
            asked.send(str(os.getpid()).encode())
        begin(request)
    except BaseException:  # nothing may go back into the loop above
        traceback.print_exc()
    finally:
        os._exit(1)


def _imported(message: bytes) -> bool:
    """Whether the request was for an import, which was tried: who needs the module will say if it cannot be had."""
    with contextlib.suppress(ValueError, TypeError):
        request = Request.from_bytes(message)
        if not request.module:
            for module in request.arguments:
                with contextlib.suppress(Exception):
                    import_module(module)
            gc.freeze()
            return True
    return False


def _note_environment() -> None:
    """Note what the imports have set: TensorFlow sets TF2_BEHAVIOR, for one, and reads it later."""
    global _set_by_imports
    if _set_by_imports is None:
        now = {name: value for name, value in os.environ.items() if not name.startswith("DTJOB_")}
        _set_by_imports = {name: value for name, value in now.items() if _at_start.get(name) != value}


def _write(room: tuple[int, int], strings: Sequence[str]) -> None:
    """Write `strings` into the room, each with a NUL at its end; those that have no place are left out."""
    address, length = room
    content = b""
    for string in strings:
        item = string.encode(errors="surrogateescape") + b"\0"
        if len(content) + len(item) > length:
            break
        content += item
    ctypes.memmove(address, content.ljust(length, b"\0"), length)


def _close_all_but(kept: int) -> None:
    """Close every descriptor but standard input, output, error and `kept`: others must see the end of their pipes."""
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
