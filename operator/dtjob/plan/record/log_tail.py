# SPDX-License-Identifier: Apache-2.0
"""The last lines of a log as a user reads them: without frames of packages, and without the supervisor's last line.

The facts of that line are fields of the status (`plan/record/failure.py`).
"""

import re
from collections.abc import Iterable, Iterator

_FRAME = re.compile(r'\s*File "([^"]+)", line \d+')
"""How a frame of a traceback begins."""
_PACKAGES = ("/site-packages/", "/dist-packages/", "/dtjob_trainer/", "<frozen ", "/lib/python")
"""Parts of the paths of files that are not the program's."""


def readable(lines: Iterable[str]) -> str:
    """The lines without frames of packages. Each frame is its line and the more indented lines after it: the code."""
    return "\n".join(_without_frames_of_packages(lines)).strip()


def _without_frames_of_packages(lines: Iterable[str]) -> Iterator[str]:
    indent: int | None = None
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if frame := _FRAME.match(line):
            indent = depth if any(part in frame[1] for part in _PACKAGES) else None
        elif indent is not None and line.strip() and depth <= indent:
            indent = None
        if indent is None:
            yield line
