"""A process that has imported TensorFlow and waits to be copied: a training process started from it skips the imports.

The imports are four fifths of the processor time of a start, and a group that lost one task starts all of its tasks
again. So the first training process, imports done and before it starts anything of TensorFlow's, leaves a copy of
itself behind: the template. Later training processes are forked from it. Both kinds become the supervisor's children
(it adopts orphans), so that it waits for them and kills them as any other.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from typing import NoReturn

from dtjob_trainer.contract.parent import die_with_parent

DESCRIPTOR_VARIABLE = "DTJOB_TEMPLATE_FD"
"""Names the inherited end of the socket on which the template is asked for processes."""
REPLY_SECONDS = 5.0
LONGEST_REQUEST = 1 << 20
_PR_SET_NAME = 15


class Template:
    """The supervisor's side: hands its socket to a first process, later asks the template for further ones."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._ours, self._theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_REQUEST)
        self._pid: int | None = None
        self._handed_over = self._gone = False

    def hand_over(self) -> int | None:
        """The descriptor for a first process to inherit; None where one had it already. Follow with `handed_over`."""
        return None if self._handed_over else self._theirs.fileno()

    def handed_over(self) -> None:
        """A process inherited the descriptor; without our copy its end is noticed."""
        self._handed_over = True
        self._theirs.close()

    @property
    def pid(self) -> int | None:
        """The template's process id, once it waits; not a process to be killed between two training processes."""
        if self._handed_over and self._pid is None:
            with contextlib.suppress(OSError, ValueError):
                self._pid = int(self._ours.recv(64, socket.MSG_DONTWAIT))
        return None if self._gone else self._pid

    def spawn(self, arguments: Sequence[str], environ: Mapping[str, str], descriptors: Mapping[str, int]) -> int | None:
        """Fork a training process that runs `dtjob_trainer.run` with `arguments`; its process id.

        `descriptors`: variable to descriptor, passed on under numbers of its own. None where no template waits, or it
        does not answer: start the process without it.
        """
        if self.pid is None:
            return None
        request = {"arguments": list(arguments), "environ": dict(environ), "descriptors": list(descriptors)}
        try:
            self._ours.settimeout(REPLY_SECONDS)
            socket.send_fds(self._ours, [json.dumps(request).encode()], list(descriptors.values()))
            return int(self._ours.recv(64))
        except (OSError, ValueError):
            # an answer that comes too late would be a second training process, which nobody waits for
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._gone = True
            return None


def leave_behind(environ: Mapping[str, str]) -> None:
    """Leave a copy of this process behind as the template, where the supervisor asks for one. Call after the imports.

    Nothing of TensorFlow's may have been started yet: its threads would be missing in the copy.
    """
    descriptor = environ.get(DESCRIPTOR_VARIABLE)
    if not descriptor:
        return
    supervisor = os.getppid()
    if _fork_orphan() is None:
        _become_child_of(supervisor)
        _serve(socket.socket(fileno=int(descriptor)), supervisor)
    os.close(int(descriptor))


def _serve(asked: socket.socket, supervisor: int) -> None:
    """Answer requests until the supervisor is gone. Returns only in a forked training process."""
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"dtjob-template", 0, 0, 0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the supervisor ends it, when it ends itself
    _close_all_but(asked.fileno())
    asked.send(str(os.getpid()).encode())
    while True:
        message, descriptors, _, _ = socket.recv_fds(asked, LONGEST_REQUEST, 8)
        if not message:
            os._exit(0)
        pid = _fork_orphan()
        if pid is None:
            asked.close()
            _train(json.loads(message), descriptors, supervisor)
        for descriptor in descriptors:
            os.close(descriptor)
        asked.send(str(pid).encode())


def _train(request: dict[str, list[str]], descriptors: Sequence[int], supervisor: int) -> NoReturn:
    """Become a training process as if started by exec."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _become_child_of(supervisor)
    environ: Mapping[str, str] = request["environ"]  # type: ignore[assignment]
    os.environ.clear()
    os.environ.update(environ)
    for variable, descriptor in zip(request["descriptors"], descriptors, strict=True):
        os.environ[variable] = str(descriptor)
    from dtjob_trainer import run

    run.main(request["arguments"])


def _fork_orphan() -> int | None:
    """Fork a process whose parent ends at once, so that the supervisor adopts it; its id here, None in it."""
    read_end, write_end = os.pipe()
    between = os.fork()
    if between == 0:
        pid = os.fork()
        if pid:
            os.write(write_end, str(pid).encode())
            os._exit(0)
        os.close(read_end)
        os.close(write_end)
        return None
    os.close(write_end)
    pid = int(os.read(read_end, 64))
    os.close(read_end)
    os.waitpid(between, 0)
    return pid


def _become_child_of(supervisor: int) -> None:
    """Wait until the supervisor has adopted this process, and die with it; in a session of its own."""
    os.setsid()
    while (parent := os.getppid()) != supervisor:
        if parent == 1:
            os._exit(1)  # the supervisor is gone
        os.sched_yield()
    die_with_parent(signal.SIGKILL, supervisor)


def _close_all_but(kept: int) -> None:
    """Close every descriptor but standard input, output, error and `kept`: others must see the end of their pipes."""
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
