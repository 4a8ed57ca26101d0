# SPDX-License-Identifier: Apache-2.0
"""Lets a call put things right before a signal ends the process."""

import contextlib
import signal
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """While this lasts, SIGTERM and SIGHUP raise SystemExit. A terminal that closes sends SIGHUP.

    In a thread other than the first, and where the program handles a signal itself, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():  # of a notebook: only the first may
        yield
        return

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    ours = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is signal.SIG_DFL]
    for one in ours:
        signal.signal(one, end)
    try:
        yield
    finally:
        for one in ours:
            signal.signal(one, signal.SIG_DFL)
