# SPDX-License-Identifier: Apache-2.0
"""Leaves out what TensorFlow prints when a peer was lost: the training goes on, and dtjob tells why in a line. Pure."""

import re
from collections.abc import Sequence

from dtjob.local.display.log_lines import Shown
from dtjob.local.display.terminal_line import plain

HOLD_SECONDS = 5.0
"""So long after an error of one process its supervisor says at the latest whether a peer was lost."""
MOST_LINES = 5000
_ERROR = re.compile(r"Traceback \(most recent call last\):|[EF]\d{4} \d\d:\d\d:\d+\.\d+ ")
"""How an error of Python and one of TensorFlow's runtime begin."""


class ErrorsHeld:
    """Holds back what one task prints from an error on, until its supervisor says what has become of the process."""

    def __init__(self, *, has_peers: bool = True) -> None:
        """`has_peers`: whether the task can lose one. If not, nothing is held back."""
        self._has_peers = has_peers
        self._held: list[Shown] = []
        self._until = 0.0

    def take(self, lines: Sequence[Shown], now: float) -> list[Shown]:
        """The lines to show now, in order. `now`: of any monotonic clock, in seconds."""
        found = []
        for line in lines:
            if line.restarts:
                if self._held:
                    count = len(self._held)
                    self._held = [
                        Shown(f"{count} lines about the lost task are left out here; the log has them", ours=True)
                    ]
                found += self.release()
            elif line.ends:
                found += self.release()
            elif self._held:
                self._held.append(line)
            elif self._has_peers and not line.ours and _ERROR.match(plain(line.text)):
                self._held, self._until = [line], now + HOLD_SECONDS
            else:
                found.append(line)
        if self._held and (now >= self._until or len(self._held) > MOST_LINES):
            found += self.release()
        return found

    def release(self) -> list[Shown]:
        """What is held back, to show it."""
        held, self._held = self._held, []
        return held
