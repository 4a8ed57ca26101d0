# SPDX-License-Identifier: Apache-2.0
"""A working directory of each task's own, where all tasks run on this machine.

A script makes directories and writes files below its working directory. In pods each task has files of its own. Under
`dtjob run` all tasks would share them: the second one would fail in `os.mkdir`, or read what another one has written.
A task that starts again finds what it has written itself and what there was before the first start, and nothing that
the chief has written since: a script that loads a model where its file exists does so in all tasks or in none.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from dtjob_trainer.contract.task import Task

LEVELS = 2
"""How many directories above the working directory have links too, for paths such as `../data`."""
MOST_LINKS = 10_000
"""Entries of a directory up to which each gets a link."""
LISTING = "files-at-the-start-{run}.json"
"""One for each `dtjob run`: between two of them the user may add files."""


def enter_own(task: Task) -> None:
    """Enter a directory for this process, with links to all that was in the working directory and beside it.

    The chief, whose files are those that the user wants, stays where it is. Pods need no such directory.
    """
    if task.parent is None or not task.termination_log:
        return
    run = Path(task.termination_log).parent.parent
    entries = at_the_start(run / LISTING.format(run=task.parent), levels_of(Path.cwd()))
    if task.is_chief:
        return
    root = run / "working-directories" / task.id
    if (inner := link(entries, root)) is not None:
        os.chdir(inner)


def levels_of(shared: Path) -> list[Path]:
    """The directories with links, from the outermost to the working directory `shared`."""
    return [*reversed(shared.parents[:LEVELS]), shared]


def at_the_start(listing: Path, levels: Sequence[Path]) -> dict[Path, list[str]]:
    """The entries of each directory when the first task of the run asked, which the file `listing` keeps."""
    with listing.open("a+", errors="surrogateescape") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if text := file.read():
            with contextlib.suppress(ValueError):  # a process was killed as it wrote
                return {Path(level): names for level, names in json.loads(text).items()}
            file.truncate(0)
        entries = {level: _names(level) for level in levels}
        file.write(json.dumps({str(level): names for level, names in entries.items()}))
    return entries


def link(entries: Mapping[Path, Sequence[str]], root: Path) -> Path | None:
    """Make the directory below `root` that stands for the last of `entries`, and return it. What is there stays.

    None: the last one has no entries, or too many.
    """
    levels = list(entries)
    if not entries[levels[-1]]:
        return None
    inner = root
    for level, below in zip(levels, [*levels[1:], None], strict=True):
        inner.mkdir(parents=True, exist_ok=True)
        for name in entries[level]:
            if below is None or name != below.name:
                with contextlib.suppress(FileExistsError):  # from the process before, or the task's own by now
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
