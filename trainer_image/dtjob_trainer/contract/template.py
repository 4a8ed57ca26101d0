# SPDX-License-Identifier: Apache-2.0
"""The template: a process that has imported TensorFlow and waits. Training processes forked from it skip the imports.

The imports take four fifths of the processor time of a start. A group that loses one task starts all of its tasks
again. So the first training process leaves a copy of itself behind: the template. It does so after its imports and
before it starts anything of TensorFlow. Later training processes are forked from the template. If a supervisor was
itself forked after the imports (launcher.py), it has its template from the start. Template and training processes
become children of the supervisor, which adopts orphans. So it waits for them and kills them like its other children.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Mapping, Sequence

from dtjob_trainer.contract import forked
from dtjob_trainer.contract.forked import LONGEST_REQUEST, Begin, Request
from dtjob_trainer.contract.parent import die_with_parent

DESCRIPTOR_VARIABLE = "DTJOB_TEMPLATE_FD"
"""Names the inherited end of the socket on which the template gets its requests."""
REPLY_SECONDS = 5.0
MODULE = "dtjob_trainer.run"
_NAME = "dtjob-template"


class Template:
    """The supervisor's side. It hands its socket to the first process and later asks the template for further ones."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (self._ours, self._theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST_REQUEST)
        self._pid: int | None = None
        self._handed_over = self._gone = False

    @classmethod
    def fork(cls, begin: Begin) -> "Template":
        """Make a copy of this process the template. For a supervisor with the imports, before its event loop."""
        made, supervisor = cls(), os.getpid()
        if os.fork() == 0:
            os.setsid()
            die_with_parent(signal.SIGKILL, supervisor)
            made._ours.close()
            forked.serve(made._theirs, supervisor, _NAME, begin)
        made.handed_over()
        with contextlib.suppress(OSError, ValueError):
            made._pid = int(made._ours.recv(64))  # the first training process is requested at once
        return made

    def hand_over(self) -> int | None:
        """The descriptor that the first process inherits. None if one has it already. Call `handed_over` afterwards."""
        return None if self._handed_over else self._theirs.fileno()

    def handed_over(self) -> None:
        """A process has inherited the descriptor. Our copy is closed, so that the end of that process is noticed."""
        self._handed_over = True
        self._theirs.close()

    @property
    def pid(self) -> int | None:
        """The template's process id, once it waits. The supervisor must not kill it between two training processes."""
        if self._handed_over and self._pid is None:
            with contextlib.suppress(OSError, ValueError):
                self._pid = int(self._ours.recv(64, socket.MSG_DONTWAIT))
        return None if self._gone else self._pid

    async def spawn(
        self, arguments: Sequence[str], environ: Mapping[str, str], descriptors: Mapping[str, int]
    ) -> int | None:
        """Fork a training process that runs `dtjob_trainer.run` with `arguments`. Returns its process id.

        The event loop goes on while the template is busy: other tasks may wait for answers of this supervisor.

        `descriptors`: variable to descriptor. The new process has them under numbers of its own. Returns None if no
        template waits or it does not answer. Then start the process without it.
        """
        if self.pid is None:
            return None
        request = Request(MODULE, arguments, dict(environ), list(descriptors))
        try:
            self._ours.setblocking(False)
            socket.send_fds(self._ours, [request.to_bytes()], list(descriptors.values()))
            async with asyncio.timeout(REPLY_SECONDS):
                return int(await asyncio.get_running_loop().sock_recv(self._ours, 64))
        except (OSError, ValueError):  # TimeoutError is an OSError
            # If it answered too late, there would be a second training process that nobody waits for.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._gone = True
            return None


def leave_behind(environ: Mapping[str, str], begin: Begin) -> None:
    """Leave a copy of this process behind as the template, if the supervisor asks for one. Call after the imports.

    Call it before anything of TensorFlow starts: a copy has none of its threads. `begin` is what the processes that are
    forked from the template do.
    """
    descriptor = environ.get(DESCRIPTOR_VARIABLE)
    if not descriptor:
        return
    supervisor = os.getppid()
    if forked.is_orphan(supervisor):
        forked.serve(socket.socket(fileno=int(descriptor)), supervisor, _NAME, begin)
    os.close(int(descriptor))
