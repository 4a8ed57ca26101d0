# SPDX-License-Identifier: Apache-2.0
"""Whether there is a GPU to test on, and which processes hold one, by what they have open.

Tests see none but where they ask for the `first`: others hold bits against each other, and split the CPU into devices.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"
_BEFORE = "DTJOB_TESTS_CUDA_VISIBLE_DEVICES"
"""What `VISIBLE` was before `hide`, which processes of pytest's inherit."""
_GPU = re.compile(r"/dev/nvidia[0-9]+$")


def hide() -> None:
    """Have processes see no GPU from now on, where there is any."""
    if not _driven():
        return
    os.environ.setdefault(_BEFORE, os.environ.get(VISIBLE, "0"))
    os.environ[VISIBLE] = "-1"


def first() -> str | None:
    """The first GPU that could be seen before `hide`, as CUDA_VISIBLE_DEVICES has it, where TensorFlow is one for GPUs
    and a driver runs."""
    found = os.environ.get(_BEFORE, "").split(",")[0].strip()
    return found if _driven() and found not in ("", "-1") and _for_gpus() else None


def hold(pid: int) -> bool:
    """Whether this process holds a GPU."""
    with contextlib.suppress(OSError):
        return any(_GPU.match(str(each.readlink())) for each in Path(f"/proc/{pid}/fd").iterdir())
    return False


def holders(parent: int) -> set[int]:
    """The processes below this one that hold a GPU, and itself where it does."""
    return {pid for pid in (parent, *_below(parent)) if hold(pid)}


def _driven() -> bool:
    """Whether a driver of NVIDIA's runs here."""
    return any(_GPU.match(str(device)) for device in Path("/dev").iterdir())


def _for_gpus() -> bool:
    """Whether the TensorFlow that is installed is not the one for CPUs alone."""
    return any(one.metadata["Name"] == "tensorflow" for one in metadata.distributions())


def _below(parent: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from _below(int(child))
