# SPDX-License-Identifier: Apache-2.0
"""Models, checkpoints and events out of the claim or the bucket of a job."""

import json
import re
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from dtjob.api.names import KIND
from dtjob.bad_input import BadInput
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused
from dtjob.client.streams import run_in_pod
from dtjob.client.verbs.helper_pod import CONTAINER, directory_of, running, typed

PROGRAM = r"""
import fnmatch, io, json, os, sys, tarfile

top, mode, patterns = sys.argv[1].rstrip("/"), sys.argv[2], sys.argv[3:]
if "://" in top:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tensorflow.io import gfile
    walk, size, read = gfile.walk, lambda path: gfile.stat(path).length, lambda path: gfile.GFile(path, "rb")
else:
    walk, size, read = os.walk, os.path.getsize, lambda path: open(path, "rb")
found = {}
for folder, _, names in walk(top):
    for name in names:
        path = folder.rstrip("/") + "/" + name
        inside = path[len(top) + 1:]
        parts = inside.split("/")
        prefixes = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
        if not patterns or any(fnmatch.fnmatch(one, pattern.rstrip("/")) for pattern in patterns for one in prefixes):
            found[inside] = path
if mode == "list":
    json.dump({name: size(path) for name, path in sorted(found.items())}, sys.stdout)
else:
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for name, path in sorted(found.items()):
            try:
                with read(path) as file:
                    entry = tarfile.TarInfo(name)
                    entry.size = size(path)
                    entry.mode = 0o644
                    archive.addfile(entry, file)
            except FileNotFoundError:
                continue
"""
"""Reads the files of a job, in a helper pod or here, by the standard library and, for buckets, TensorFlow."""
IDLE = ["python3", "-c", "import time; time.sleep(86400)"]
WORDS = {"checkpoints": ["ckpt-*", "checkpoint", "stage-*"], "events": ["events"], "logs": ["logs"], "all": ["*"]}
"""Words for files, beside their paths."""
Ask = Callable[[Sequence[str], Callable[[bytes], object]], None]
"""Runs PROGRAM with these arguments, and gives its output to a function, piece by piece."""
_CHECKPOINT = re.compile(r"(?:.*/)?(?:damaged-)?ckpt-\d+\..*|events/.*|logs/.*|\..*|(?:.*/)?(?:checkpoint|DONE)")


def fetch(cluster: Cluster, name: str, paths: Sequence[str], directory: Path, image: str | None = None) -> list[Path]:
    """Copy these files of the job into a directory. Without paths: its models. Returns where they are.

    Raises BadInput for a path elsewhere, Refused if there are no such files, and NotDone.
    """
    stored = cluster.get(KIND, name)
    top = directory_of(typed(stored))
    patterns(paths, top)  # before a pod is made for it
    with running(cluster, stored, IDLE, image) as pod:
        return copied(in_pod(cluster, pod), name, top, paths, directory)


def copied(ask: Ask, name: str, top: str, paths: Sequence[str], directory: Path) -> list[Path]:
    """Copy these files of the job into a directory. Without paths: its models. Returns where they are.

    `ask` runs a program that reads the files below `top`. Raises Refused if there are no such files, and NotDone.
    """
    wanted = patterns(paths, top)
    if not wanted:
        there = sizes(ask, top)
        wanted = models(there)
        if not wanted:
            raise Refused(f"{name}: has no model in {top}; {_there(there)}")
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=directory) as archive:  # /tmp may be memory
        ask([top, "tar", *wanted], archive.write)
        archive.seek(0)
        with tarfile.open(fileobj=archive, mode="r:") as found:
            names = found.getnames()
            found.extractall(directory, filter="data")
    if not names:
        raise Refused(f"{name}: {', '.join(paths)}: no such file in {top}; {_there(sizes(ask, top))}")
    return [directory / one for one in names]


def listed(cluster: Cluster, name: str, image: str | None = None) -> dict[str, int]:
    """The files of the job with their sizes in bytes."""
    stored = cluster.get(KIND, name)
    with running(cluster, stored, IDLE, image) as pod:
        return sizes(in_pod(cluster, pod), directory_of(typed(stored)))


def in_pod(cluster: Cluster, pod: str) -> Ask:
    """The program in a helper pod."""
    return lambda arguments, sink: run_in_pod(cluster, pod, CONTAINER, ["python3", "-c", PROGRAM, *arguments], sink)


def sizes(ask: Ask, top: str) -> dict[str, int]:
    """The files below `top`, with their sizes in bytes."""
    said = bytearray()
    ask([top, "list"], said.extend)
    found: dict[str, int] = json.loads(said)
    return found


def patterns(paths: Sequence[str], top: str) -> list[str]:
    """What these words and paths choose below `top`. Raises BadInput for a path elsewhere."""
    return [pattern for path in paths for pattern in WORDS.get(path, [_relative(path, top)])]


def models(files: Sequence[str] | dict[str, int]) -> list[str]:
    """The paths of what is no checkpoint, no event and no log: models, as files or folders."""
    others = [file for file in files if not _CHECKPOINT.fullmatch(file)]
    return sorted({file if "/" not in file else file.split("/", 1)[0] for file in others})


def _relative(path: str, top: str) -> str:
    """The path below the directory of the checkpoints. Raises BadInput if it is elsewhere."""
    inside = path.removeprefix(f"{top.rstrip('/')}/")
    if inside.startswith("/") or ".." in PurePosixPath(inside).parts:
        raise BadInput(f"{path}: is not below {top}; give a path relative to it, or checkpoints, events, logs or all")
    return inside


def _there(files: dict[str, int]) -> str:
    top = sorted({file.split("/", 1)[0] for file in files})
    shown = ", ".join(top[:8]) + (", …" if len(top) > 8 else "")
    return f"there are {shown}" if top else "there are no files yet"
