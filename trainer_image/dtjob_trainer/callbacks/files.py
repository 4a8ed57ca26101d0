# SPDX-License-Identifier: Apache-2.0
"""Files that callbacks write and that a script reads after its fit.

A script may write those of a ModelCheckpoint, or of KerasTuner's like, to a temporary directory, or to its working
directory, which goes with the pod. It loads them after its fit, also where that fit had ended before a restart and
writes nothing again. So a checkpoint keeps them where they are small.

The script finds files in every task: all tasks see the chief's, or each one writes its own.
"""

import contextlib
import glob
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dtjob_trainer.process import places
from dtjob_trainer.strategies.agreement import Agreement, digest

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

MOST_BYTES = 32 * 2**20
"""Most bytes that a checkpoint keeps of the files of one callback."""
BEGAN = "_dtjob_files_before"
"""Attribute of a callback: which files of its were there as training began, and when each was written."""
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
"""A part of a path that Keras fills in, such as `{epoch:02d}`."""
ENDS = ("", ".index", ".data-?????-of-?????")
"""How names of files go on after the path. TensorFlow's own format has several files."""

WRITERS = (("keras.", "ModelCheckpoint"), ("tf_keras.", "ModelCheckpoint"), ("keras_tuner.", "SaveBestEpoch"))
"""How the module begins, and the name, of the classes whose files at `filepath` a program loads."""

PROBE = ".dtjob-{token}-{level}"
"""The name of the file by which tasks see that they share a directory. `level` counts the directories between this one
and the path's own: a task may work in a directory below that of the chief."""
TOKENS = 2**52
"""Numbers that a float64 holds exactly."""

Files = dict[str, npt.NDArray[np.uint8]]


def are_kept(callback: Any) -> bool:
    """Whether `callback` is of a class of WRITERS or derives from it, so that a checkpoint keeps its files."""
    bases = type(callback).__mro__
    return any(base.__module__.startswith(home) and base.__name__ == name for base in bases for home, name in WRITERS)


def begin(callback: Any) -> None:
    """Remember which files of `callback` are there as training begins."""
    vars(callback)[BEGAN] = {name: _written(path) for name, path in _files(str(callback.filepath)).items()}


def written(callback: Any) -> Files:
    """The content of the files that `callback` has written since, by their names below the directory of its path.

    Empty where they are too large to be kept.
    """
    found = _of_training(callback)
    return {} if _bytes(found) > MOST_BYTES else {name: np.fromfile(path, np.uint8) for name, path in found.items()}


def left_out(callback: Any) -> str | None:
    """What to write instead where files of `callback` are lost with the pod. None: they are not."""
    if _bytes(_of_training(callback)) <= MOST_BYTES or places.is_on_volume(Path(callback.filepath)):
        return None
    return (
        f"callbacks: the files of {type(callback).__name__} have more than {MOST_BYTES >> 20} MiB, so that no "
        f"checkpoint keeps them, and go with the pod; write them to a volume, and not to {callback.filepath}"
    )


def put_back(callback: Any, files: Mapping[str, npt.NDArray[np.uint8]]) -> None:
    """Write `files`, which `written` gave, as they were then. They count as written in this training."""
    for name, content in files.items():
        path = _directory(str(callback.filepath)) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{os.getpid()}-{path.name}")
        content.tofile(beside)
        beside.replace(path)
        vars(callback).get(BEGAN, {}).pop(name, None)


def _of_training(callback: Any) -> dict[str, Path]:
    before: Mapping[str, int] = vars(callback).get(BEGAN, {})
    files = _files(str(callback.filepath))
    return {name: path for name, path in files.items() if before.get(name) != _written(path)}


def _bytes(files: Mapping[str, Path]) -> int:
    return sum(path.stat().st_size for path in files.values())


def _directory(filepath: str) -> Path:
    """The directory of a path as far as Keras fills nothing in."""
    return Path(PLACEHOLDER.split(filepath)[0] + "x").parent


def _files(filepath: str) -> dict[str, Path]:
    """The files at a path of a callback, by their names below its directory."""
    if "://" in filepath:
        return {}
    directory = _directory(filepath)
    pattern = "*".join(map(glob.escape, PLACEHOLDER.split(filepath)))
    found = [Path(name) for end in ENDS for name in sorted(glob.glob(pattern + end))]  # noqa: PTH207 (of any root)
    if any(path.name.endswith(".index") for path in found):
        found += [path.with_name("checkpoint") for path in found[:1] if path.with_name("checkpoint").is_file()]
    inside = [each for path in found if path.is_dir() for each in sorted(path.rglob("*"))]
    return {str(path.relative_to(directory)): path for path in [*found, *inside] if path.is_file()}


def _written(path: Path) -> int:
    return path.stat().st_mtime_ns


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
