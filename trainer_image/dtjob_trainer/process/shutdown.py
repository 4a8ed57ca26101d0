# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: asks the training loop to save and stop, and ends the process if it cannot. No TensorFlow here."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Mapping

from dtjob_trainer.contract import exit_codes
from dtjob_trainer.contract.strategy import Traits

MARGIN_SECONDS = 1.0
"""If saving does not end in time, this process ends itself so long before SIGKILL."""
CATCH_UP = 0
"""What is written to the pipe of signals to learn that all before it is read. No signal has this number."""
CATCH_UP_SECONDS = 5.0


class Shutdown:
    """Whether this process was asked to stop, by its own SIGTERM or because a peer is preempted.

    A signal is noticed even while the main thread is inside TensorFlow, where Python's own handlers would have to wait.
    The interpreter's C handler writes the signal's number to a pipe, and a thread reads it. A program that sets a
    handler of its own saves and stops by itself. It only gets the time for that.
    """

    def __init__(self, grace_seconds: float) -> None:
        self.signalled = False
        """This task itself got SIGTERM."""
        self.peer_preempted = False
        """The supervisor has said that a peer is about to leave."""
        self.release: Callable[[], None] = lambda: None
        """Called before this process ends and no other one of its task goes on at once. It gives up what is held."""
        self._grace_seconds = grace_seconds
        self._saves = False
        self._lock = threading.Lock()
        self._signalled = threading.Event()
        self._write_end = -1
        self._caught_up = threading.Event()

    @property
    def requested(self) -> bool:
        """Whether to save and stop at the next step on which all tasks agree."""
        return self.signalled or self.peer_preempted

    @property
    def exit_code(self) -> int:
        """The exit code after a stop that was asked for: 143 for the task with SIGTERM, 75 for its peers."""
        return exit_codes.TERMINATED if self.signalled else exit_codes.PEER_LOST

    def install(self) -> None:
        """Catch SIGTERM from now on. Call in the main thread."""
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        self._write_end = write_end
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        self.catch()
        os.register_at_fork(before=_hold_back, after_in_parent=_go_on, after_in_child=_let_go)
        threading.Thread(target=self._watch, args=(read_end,), name="signals", daemon=True).start()

    def catch(self) -> None:
        """Catch SIGTERM (again). TensorFlow's coordination service sets a handler of its own when it starts."""
        signal.signal(signal.SIGTERM, _leave_to_the_thread)

    def catch_up(self) -> None:
        """Return once the thread has noticed the signals that came before this call.

        The program's own handler may end the program before the thread has looked.
        """
        if self._write_end < 0:
            return
        self._caught_up.clear()
        with contextlib.suppress(OSError):  # the program may have closed all files
            os.write(self._write_end, bytes([CATCH_UP]))
            self._caught_up.wait(CATCH_UP_SECONDS)

    def training_begins(self) -> None:
        """From now on the training loop answers a stop.

        Before, SIGTERM ends the process at once, unless the program has a handler of its own.
        """
        with self._lock:
            self._saves = True

    def training_ends(self) -> None:
        """The loop has ended and saved. SIGTERM ends the process at once again, unless the program has a handler."""
        with self._lock:
            self._saves = False
            if self.signalled and not _program_answers():
                self._end()

    def training_is_left(self) -> None:
        """An error has ended the loop. It does not answer a stop any more."""
        with self._lock:
            self._saves = False

    def wait_signalled(self, seconds: float | None = None) -> bool:
        """Wait until this task gets SIGTERM. Returns False after `seconds` without one."""
        return self._signalled.wait(seconds)

    def tell_peer_preempted(self) -> None:
        """Ask for a stop because a peer is about to leave."""
        self.peer_preempted = True

    def _end(self) -> None:
        self.release()
        os._exit(exit_codes.TERMINATED)

    def _watch(self, read_end: int) -> None:
        while True:
            noted = os.read(read_end, 64)
            if signal.SIGTERM in noted:
                self._notice()
            if CATCH_UP in noted:
                self._caught_up.set()

    def _notice(self) -> None:
        with self._lock:
            if not self._saves and not _program_answers():
                self._end()
            self.signalled = True
        self._signalled.set()
        deadline = threading.Timer(max(self._grace_seconds - MARGIN_SECONDS, 0.1), os._exit, (exit_codes.TERMINATED,))
        deadline.daemon = True
        deadline.start()


def _leave_to_the_thread(*_: object) -> None:
    """The handler of SIGTERM. It does nothing, because a thread reads the signal."""


def _program_answers() -> bool:
    """Whether the program has its own handler of SIGTERM. TensorFlow's PreemptionCheckpointHandler sets one."""
    return signal.getsignal(signal.SIGTERM) is not _leave_to_the_thread


def _hold_back() -> None:
    """Before the program forks, as multiprocessing does: block SIGTERM until the child has its own handler."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _go_on() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _let_go() -> None:
    """In the child: SIGTERM ends it. It is not written to the pipe, which the child shares with this process."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _go_on()


def stops_training(line: Mapping[str, object], traits: Traits) -> bool:
    """Whether a line of the go pipe is about a preempted peer that training cannot go on without.

    ParameterServer trains on without a worker. No training needs the evaluator.
    """
    peer = line.get("peerPreempted")
    if not isinstance(peer, str):
        return False
    return peer.rpartition("-")[0] not in ("evaluator", *traits.dispensable_roles)
