# SPDX-License-Identifier: Apache-2.0
"""The last lines of a log as a user reads them: without frames of packages, and without the supervisor's last line.

The facts of that line are fields of the status (`plan/record/failure.py`).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Line = TypeVar("Line")

_FRAME = re.compile(r'\s*File "([^"]+)", line \d+')
"""How a frame of a traceback begins."""
_PACKAGES = ("/site-packages/", "/dist-packages/", "/dtjob_trainer/", "<frozen ", "/lib/python")
"""Parts of the paths of files that are not the program's."""


def readable(lines: Iterable[str]) -> str:
    """The lines without frames of packages."""
    return "\n".join(without_frames_of_packages(lines, str)).strip()


def without_frames_of_packages(lines: Iterable[Line], text_of: Callable[[Line], str]) -> Iterator[Line]:
    """The lines without those of such frames. Each frame is its line and the more indented lines after it: the code."""
    indent: int | None = None
    for line in lines:
        text = text_of(line)
        depth = len(text) - len(text.lstrip())
        if frame := _FRAME.match(text):
            indent = depth if any(part in frame[1] for part in _PACKAGES) else None
        elif indent is not None and text.strip() and depth <= indent:
            indent = None
        if indent is None:
            yield line
