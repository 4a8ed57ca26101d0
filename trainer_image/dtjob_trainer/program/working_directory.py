# SPDX-License-Identifier: Apache-2.0
"""A working directory of each task's own, where all tasks run on this machine.

A script makes directories and writes files below its working directory. In pods each task has files of its own. Under
`dtjob run` all tasks would share them: the second one would fail in `os.mkdir`, or read what another one has written.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from dtjob_trainer.contract.task import Task

LEVELS = 2
"""How many directories above the working directory have links too, for paths such as `../data`."""
MOST_LINKS = 10_000
"""Entries of a directory up to which each gets a link."""


def enter_own(task: Task) -> None:
    """Enter a directory for this process, with links to all that is in the working directory and beside it.

    The chief, whose files are those that the user wants, stays where it is. Pods need no such directory.
    """
    if task.parent is None or not task.termination_log or task.is_chief:
        return
    root = Path(task.termination_log).parent.parent / "working-directories" / task.id
    shutil.rmtree(root, ignore_errors=True)  # of the process before this one
    if (inner := link(Path.cwd(), root)) is not None:
        os.chdir(inner)


def link(shared: Path, root: Path) -> Path | None:
    """Make the directory below `root` that stands for `shared`, and return it.

    None: `shared` has no entries, or too many.
    """
    levels = [*reversed(shared.parents[:LEVELS]), shared]
    if not _names(shared):
        return None
    inner = root
    for level, below in zip(levels, [*levels[1:], None], strict=True):
        inner.mkdir(parents=True)
        for name in _names(level):
            if below is None or name != below.name:
                (inner / name).symlink_to(level / name)
        inner = inner if below is None else inner / below.name
    return inner


def _names(directory: Path) -> list[str]:
    """The entries of `directory`; none where it has too many, or cannot be read."""
    try:
        found = [entry.name for entry in directory.iterdir()]
    except OSError:
        return []
    return found if len(found) <= MOST_LINKS else []
