"""Which processes hold a GPU, by what they have open."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

_GPU = re.compile(r"/dev/nvidia[0-9]+$")


def is_here() -> bool:
    """Whether this machine has a GPU of NVIDIA's whose driver runs."""
    return any(_GPU.match(str(device)) for device in Path("/dev").iterdir())


def holders(parent: int) -> set[int]:
    """The processes below this one that hold a GPU, and itself where it does."""
    return {pid for pid in (parent, *_below(parent)) if _holds(pid)}


def _holds(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return any(_GPU.match(str(each.readlink())) for each in Path(f"/proc/{pid}/fd").iterdir())
    return False


def _below(parent: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _below(int(child))
