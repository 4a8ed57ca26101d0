# SPDX-License-Identifier: Apache-2.0
"""The last lines of a log as a user reads them: without frames of packages, and without the supervisor's last line.

The facts of that line are fields of the status (`plan/record/failure.py`).
"""

import re
from collections.abc import Iterable

_FRAME = re.compile(r'\s+File "([^"]+)", line \d+')
"""How a frame of a traceback begins."""
_PACKAGES = ("/site-packages/", "/dist-packages/", "/dtjob_trainer/", "<frozen ", "/lib/python3")
"""Parts of the paths of files that are not the program's."""


class Frames:
    """Tells frames of packages from other lines, one line of a log after the other."""

    def __init__(self) -> None:
        self._indent: int | None = None
        """How far the frame of a package is indented, within one. The more indented lines after its first are code."""

    def keeps(self, line: str) -> bool:
        """Whether the next line of the log is none of such a frame."""
        depth = len(line) - len(line.lstrip())
        if frame := _FRAME.match(line):
            self._indent = depth if any(part in frame[1] for part in _PACKAGES) else None
        elif self._indent is not None and line.strip() and depth <= self._indent:
            self._indent = None
        return self._indent is None


def readable(lines: Iterable[str]) -> str:
    """The lines without frames of packages."""
    return "\n".join(filter(Frames().keeps, lines)).strip()
