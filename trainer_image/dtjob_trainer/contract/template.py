"""A process that has imported TensorFlow and waits to be copied: a training process started from it skips the imports.

The imports are four fifths of the processor time of a start, and a group that lost one task starts all of its tasks
again. So the first training process, imports done and before it starts anything of TensorFlow's, leaves a copy of
itself behind: the template. Later training processes are forked from it. A supervisor that was itself forked after the
imports (launcher.py) has its template from the start. Template and training processes become the supervisor's children
(it adopts orphans), so that it waits for them and kills them as any other.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence

from dtjob_trainer.contract import forked
from dtjob_trainer.contract.forked import LONGEST_REQUEST, Begin, Request
from dtjob_trainer.contract.parent import die_with_parent

DESCRIPTOR_VARIABLE = "DTJOB_TEMPLATE_FD"
"""Names the inherited end of the socket on which the template is asked for processes."""
REPLY_SECONDS = 5.0
IMPORT_SECONDS = 30.0
"""Within which the template may be at an import, and answer after it."""
MODULE = "dtjob_trainer.run"
_NAME = "dtjob-template"


class Template:
    """The supervisor's side: hands its socket to a first process, later asks the template for further ones."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._ours, self._theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_REQUEST)
        self._pid: int | None = None
        self._handed_over = self._gone = False
        self._imports: set[str] = set()
        self._imported_by = 0.0

    @classmethod
    def fork(cls, begin: Begin) -> Template:
        """Make a copy of this process the template. For a supervisor that has the imports, before its event loop."""
        made, supervisor = cls(), os.getpid()
        if os.fork() == 0:
            os.setsid()
            die_with_parent(signal.SIGKILL, supervisor)
            made._ours.close()
            forked.serve(made._theirs, supervisor, _NAME, begin)
        made.handed_over()
        with contextlib.suppress(OSError, ValueError):
            made._pid = int(made._ours.recv(64))  # the first training process is asked for at once
        return made

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
        request = Request(MODULE, arguments, dict(environ), list(descriptors))
        try:
            self._ours.settimeout(max(REPLY_SECONDS, self._imported_by - time.monotonic()))
            socket.send_fds(self._ours, [request.to_bytes()], list(descriptors.values()))
            return int(self._ours.recv(64))
        except (OSError, ValueError):
            # an answer that comes too late would be a second training process, which nobody waits for
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._gone = True
            return None

    def also_import(self, module: str) -> None:
        """Have the template import what its processes import before they train; each module once."""
        if module in self._imports or self.pid is None:
            return
        self._imports.add(module)
        self._imported_by = time.monotonic() + IMPORT_SECONDS
        with contextlib.suppress(OSError):
            self._ours.send(Request.to_import(module).to_bytes())


def leave_behind(environ: Mapping[str, str], begin: Begin) -> None:
    """Leave a copy of this process behind as the template, where the supervisor asks for one. Call after the imports.

    Nothing of TensorFlow's may have been started yet: its threads would be missing in the copy. `begin` is what the
    processes that are forked from it do.
    """
    descriptor = environ.get(DESCRIPTOR_VARIABLE)
    if not descriptor:
        return
    supervisor = os.getppid()
    if forked.is_orphan(supervisor):
        forked.serve(socket.socket(fileno=int(descriptor)), supervisor, _NAME, begin)
    os.close(int(descriptor))
