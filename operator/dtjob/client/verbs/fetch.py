# SPDX-License-Identifier: Apache-2.0
"""Models, checkpoints and events out of the claim or the bucket of a job."""

import json
import re
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from dtjob.api.names import KIND
from dtjob.bad_input import BadInput
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused
from dtjob.client.streams import run_in_pod
from dtjob.client.verbs.helper_pod import CONTAINER, directory_of, running
from dtjob.client.verbs.sent import PROGRAM

IDLE = ["python3", "-c", "import time; time.sleep(86400)"]
WORDS = {"checkpoints": ["ckpt-*", "checkpoint", "stage-*"], "events": ["events"], "all": ["*"]}
"""Words for files, beside their paths."""
_CHECKPOINT = re.compile(r"(?:.*/)?(?:damaged-)?ckpt-\d+\..*|events/.*|\..*|(?:.*/)?(?:checkpoint|DONE)")


def fetch(
    cluster: Cluster,
    name: str,
    paths: Sequence[str],
    directory: Path,
    image: str | None = None,
) -> list[Path]:
    """Copy these files of the job into a directory. Without paths: its models. Returns where they are.

    Raises BadInput for a path elsewhere, Refused if there are no such files, and NotDone.
    """
    stored = cluster.get(KIND, name)
    top = directory_of(stored)
    patterns = [pattern for path in paths for pattern in WORDS.get(path, [_relative(path, top)])]
    with running(cluster, stored, IDLE, image) as pod:
        if not patterns:
            there = sizes(cluster, pod, top)
            patterns = models(there)
            if not patterns:
                raise Refused(f"{name}: has no model in {top}; {_there(there)}")
        with tempfile.TemporaryFile() as archive:
            run_in_pod(cluster, pod, CONTAINER, ["python3", "-c", PROGRAM, top, "tar", *patterns], archive.write)
            archive.seek(0)
            names = _unpacked(archive, directory)
        if not names:
            raise Refused(f"{name}: {', '.join(paths)}: no such file in {top}; {_there(sizes(cluster, pod, top))}")
    return [directory / one for one in names]


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
