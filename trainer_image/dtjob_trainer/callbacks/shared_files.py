# SPDX-License-Identifier: Apache-2.0
"""Whether files that the chief writes are there for the other tasks too.

A script that reads what a callback of its fit has written finds the file in every task: all tasks see the chief's, or
each one writes its own.
"""

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dtjob_trainer.strategies.agreement import Agreement, digest

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

PROBE = ".dtjob-{token}-{level}"
"""The name of the file by which tasks see that they share a directory, which is so many levels above a path's own. A
task may work in a directory below that of the chief."""
TOKENS = 2**52
"""Numbers that a float64 holds exactly."""


def writes_here(group: "Group", paths: Sequence[str]) -> bool:
    """Whether this task writes the files of its callbacks at `paths`: the chief does, and the others where they do not
    see the chief's files. Collective, where there are several tasks.
    """
    chief = group.index == 0
    if group.tasks == 1:
        return chief
    local = [path for path in paths if "://" not in path]
    token = secrets.randbelow(TOKENS) if chief else 0
    with _probes(local, token) if chief else contextlib.nullcontext():
        found = Agreement(group).add("number", len(local)).add("paths", digest(local)).add("token", token).exchange()
        if not found["number"].any():
            return chief
        same = bool((found["paths"] == found["paths"][0]).all())
        seen = same and all(_sees(path, int(found["token"][0, 0])) for path in local)
        shared = bool(Agreement(group).add("seen", seen).exchange()["seen"].all())
    return chief or not shared


def _above(path: str, token: int) -> Iterator[Path]:
    """The probes for `path` in the directories above it that exist, the nearest one first."""
    levels = enumerate(Path(path).absolute().parents)
    return (each / PROBE.format(token=token, level=level) for level, each in levels if each.is_dir())


@contextlib.contextmanager
def _probes(paths: Sequence[str], token: int) -> Iterator[None]:
    """While this lasts, a file with this `token` is in the nearest directory above each of `paths`."""
    made = {next(_above(path, token)) for path in paths}
    try:
        for probe in made:
            with contextlib.suppress(OSError):  # then nobody sees it
                probe.touch()
        yield
    finally:
        for probe in made:
            with contextlib.suppress(OSError):
                probe.unlink()


def _sees(path: str, token: int) -> bool:
    return any(probe.exists() for probe in _above(path, token))
