# SPDX-License-Identifier: Apache-2.0
"""Processes that are forked instead of executed. They are requested on a socket and behave as if started by exec.

A request is one message (contract.md): JSON, with file descriptors beside it. The answer is the new process' id.
The new process loses its parent at once. The process that asked is a subreaper: it adopts the new one and waits for it
as for its other children.
"""

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
from pathlib import Path
from typing import NoReturn

from dtjob_trainer.contract.parent import die_with_parent

LONGEST_REQUEST = 1 << 20
MOST_DESCRIPTORS = 8
ROOM_VARIABLE = "DTJOB_ROOM"
"""A long value of this variable and a long last argument reserve memory, in which forked processes show their own."""
_PR_SET_NAME = 15
_NAME_BYTES = 15
_SHOWN_FIRST = ("DTJOB_UID", "DTJOB_ROLE", "DTJOB_INDEX", "DTJOB_ATTEMPT", "DTJOB_CLUSTER_FILE", "DTJOB_STATUS_PORT")


@dataclass(frozen=True)
class Request:
    """What a forked process will run."""

    module: str
    """The module, as after `python3 -m`."""
    arguments: Sequence[str]
    environ: Mapping[str, str]
    descriptors: Sequence[str] = ()
    """For each descriptor beside the message: the variable that names it, or the number that it gets (1, 2)."""
    directory: str | None = None
    """The working directory. None: the one of the process that is copied."""

    def to_bytes(self) -> bytes:
        """The request as a message."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, message: bytes) -> "Request":
        """Read a message. Raises ValueError or TypeError if it is not a request."""
        return cls(**json.loads(message))


Begin = Callable[[Request], NoReturn]
"""Does what the request asks for. It is all that the new process does."""


@dataclass
class Room:
    """The memory of this process that /proc shows as its arguments and environment."""

    arguments: tuple[int, int] = (0, 0)
    """Address and length in bytes."""
    variables: tuple[int, int] = field(default=(0, 0))

    @classmethod
    def find(cls) -> "Room":
        """The room that this process was started with. It is empty if ROOM_VARIABLE is not set."""
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        first_argument, end, first_variable, last = (int(number) for number in fields[45:49])
        environ = ctypes.string_at(first_variable, last - first_variable)
        name = f"{ROOM_VARIABLE}=".encode()
        for item in environ.split(b"\0"):
            if item.startswith(name):
                return cls((first_argument, end - first_argument), (first_variable + environ.index(item), len(item)))
        return cls()

    def show(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Have /proc show `command` and the DTJOB_ variables of `environ`, as far as there is room."""
        _write(self.arguments, command)
        ours = {name: value for name, value in environ.items() if name.startswith("DTJOB_")}
        names = [*(name for name in _SHOWN_FIRST if name in ours), *(n for n in ours if n not in _SHOWN_FIRST)]
        _write(self.variables, [f"{name}={ours[name]}" for name in names])


_room = Room()
_at_start = dict(os.environ)
_set_by_imports: dict[str, str] | None = None


def take_room() -> None:
    """Find the room that this process was started with. Processes that are forked later use it."""
    global _room
    with contextlib.suppress(OSError, ValueError):
        _room = Room.find()
    os.environ.pop(ROOM_VARIABLE, None)


def serve(asked: socket.socket, parent: int, name: str, begin: Begin) -> NoReturn:
    """Answer requests until the other end of `asked` is closed. The forked processes become children of `parent`.

    Only a process with one thread may call this. Its first message is its own process id. From then on it answers.
    """
    set_name(name)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the process that asks ends this one by closing the socket
    os.closerange(3, asked.fileno())  # an open copy of a pipe would hide its end
    os.closerange(asked.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    _note_environment()
    gc.freeze()  # shared objects are never garbage, and a collection would copy their pages
    asked.send(str(os.getpid()).encode())
    while True:
        try:
            message, descriptors, _, _ = socket.recv_fds(asked, LONGEST_REQUEST, MOST_DESCRIPTORS)
        except ConnectionError:
            os._exit(0)
        if not message:
            os._exit(0)
        if is_orphan(parent):
            _become(message, descriptors, asked, begin)
        for descriptor in descriptors:
            os.close(descriptor)


def is_orphan(parent: int) -> bool:
    """Fork a process that `parent` adopts. Returns True in the new process and False in this one.

    The new process is in a session of its own. It gets SIGKILL when its new parent dies.
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
    """Set the name that `ps` and `top` show. They show the first 15 bytes."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode()[:_NAME_BYTES], 0, 0, 0)


def task_name(environ: Mapping[str, str]) -> str:
    """The name of a process' task, such as `worker-1`."""
    return f"{environ.get('DTJOB_ROLE', 'program')}-{environ.get('DTJOB_INDEX', '0')}"


def _become(message: bytes, descriptors: Sequence[int], asked: socket.socket, begin: Begin) -> NoReturn:
    """Become the process that the request asks for, as if started by exec, and answer the request."""
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
    except BaseException:  # nothing may return to the loop above
        traceback.print_exc()
    finally:
        os._exit(1)


def _note_environment() -> None:
    """Note which variables imports have set. TensorFlow, for example, sets TF2_BEHAVIOR and reads it later."""
    global _set_by_imports
    if _set_by_imports is None:
        now = {name: value for name, value in os.environ.items() if not name.startswith("DTJOB_")}
        _set_by_imports = {name: value for name, value in now.items() if _at_start.get(name) != value}


def _write(room: tuple[int, int], strings: Sequence[str]) -> None:
    """Write `strings` into the room, each with a NUL at its end. Strings that do not fit are left out."""
    address, length = room
    content = b""
    for string in strings:
        item = string.encode(errors="surrogateescape") + b"\0"
        if len(content) + len(item) > length:
            break
        content += item
    ctypes.memmove(address, content.ljust(length, b"\0"), length)
