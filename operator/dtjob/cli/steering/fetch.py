# SPDX-License-Identifier: Apache-2.0
"""`dtjob fetch`: models, checkpoints and events out of the claim or the bucket of a job."""

import json
import re
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from dtjob.api.names import KIND
from dtjob.cli.bad_input import BadInput
from dtjob.cli.steering.helper_pod import CONTAINER, directory_of, running
from dtjob.cli.steering.sent import PROGRAM
from dtjob.client.cluster import Cluster
from dtjob.client.streams import run_in_pod

IDLE = ["python3", "-c", "import time; time.sleep(86400)"]
WORDS = {"checkpoints": ["ckpt-*", "checkpoint", "stage-*"], "events": ["events"], "all": ["*"]}
"""Words for files, beside their paths."""
_CHECKPOINT = re.compile(r"(?:.*/)?(?:damaged-)?ckpt-\d+\..*|events/.*|\..*|(?:.*/)?(?:checkpoint|DONE)")


def fetch(
    cluster: Cluster,
    name: str,
    paths: Sequence[str],
    directory: Path,
    say: Callable[[str], None],
    image: str | None = None,
) -> list[str]:
    """Copy these files of the job into a directory. Without paths: its models. Returns their names.

    Raises BadInput if there are none.
    """
    stored = cluster.get(KIND, name)
    top = directory_of(stored)
    patterns = [pattern for path in paths for pattern in WORDS.get(path, [_relative(path, top)])]
    with running(cluster, stored, IDLE, image) as pod:
        if not patterns:
            there = sizes(cluster, pod, top)
            patterns = models(there)
            if not patterns:
                raise BadInput(f"{name}: has no model in {top}; {_there(there)}")
        with tempfile.TemporaryFile() as archive:
            run_in_pod(cluster, pod, CONTAINER, ["python3", "-c", PROGRAM, top, "tar", *patterns], archive.write)
            archive.seek(0)
            names = _unpacked(archive, directory)
        if not names:
            raise BadInput(f"{name}: {', '.join(paths)}: no such file in {top}; {_there(sizes(cluster, pod, top))}")
    for one in names:
        say(str(directory / one))
    return names


def listed(cluster: Cluster, name: str, image: str | None = None) -> dict[str, int]:
    """The files of the job with their sizes in bytes."""
    stored = cluster.get(KIND, name)
    with running(cluster, stored, IDLE, image) as pod:
        return sizes(cluster, pod, directory_of(stored))


def sizes(cluster: Cluster, pod: str, top: str) -> dict[str, int]:
    """The files below `top`, as the helper pod sees them."""
    said = bytearray()
    run_in_pod(cluster, pod, CONTAINER, ["python3", "-c", PROGRAM, top, "list"], said.extend)
    found: dict[str, int] = json.loads(said)
    return found


def models(files: Sequence[str] | dict[str, int]) -> list[str]:
    """The paths of what is no checkpoint and no event: models, as files or folders."""
    others = [file for file in files if not _CHECKPOINT.fullmatch(file)]
    return sorted({file if "/" not in file else file.split("/", 1)[0] for file in others})


def _relative(path: str, top: str) -> str:
    """The path below the directory of the checkpoints. Raises BadInput if it is elsewhere."""
    inside = path.removeprefix(f"{top.rstrip('/')}/")
    if inside.startswith("/") or ".." in PurePosixPath(inside).parts:
        raise BadInput(f"{path}: is not below {top}; give a path relative to it, or checkpoints, events or all")
    return inside


def _there(files: dict[str, int]) -> str:
    top = sorted({file.split("/", 1)[0] for file in files})
    shown = ", ".join(top[:8]) + (", …" if len(top) > 8 else "")
    return f"there are {shown}" if top else "there are no files yet"


def _unpacked(archive: Any, directory: Path) -> list[str]:
    directory.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=archive, mode="r:") as found:
        names = [member.name for member in found.getmembers()]
        found.extractall(directory, filter="data")
    return names
