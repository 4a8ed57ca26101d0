# SPDX-License-Identifier: Apache-2.0
"""The files of program.source, from a ConfigMap or a volume: copied into the working directory."""

import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dtjob_trainer.errors import TaskError

VARIABLE = "DTJOB_SOURCE"
ARCHIVE = "source.tar.gz"
"""The file that is an archive of files and folders."""
LOST_AND_FOUND = "lost+found"
"""A folder of ext4 at the root of a volume, which only root may read."""
_NAME = "dtjob-source"


def enter(environ: Mapping[str, str]) -> None:
    """Copy the files into a directory of this container and make it the working directory. Nothing if there are none.

    The mount is read-only, and programs write beside themselves. Raises TaskError if the files cannot be read.
    """
    mounted = environ.get(VARIABLE)
    if not mounted:
        return
    if not Path(mounted).exists():
        raise TaskError(
            f"program.source cannot be read: there is no {mounted}; correct program.source.path, or, if its volume is "
            "an image, use Kubernetes 1.35 or newer (an older API server removes such volumes from pods)"
        )
    directory = Path(tempfile.gettempdir()) / _NAME
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        for file in sorted(Path(mounted).iterdir()):
            if file.name.startswith("..") or file.name == LOST_AND_FOUND:  # ..: how the kubelet swaps versions
                continue
            if file.is_dir():
                shutil.copytree(file, directory / file.name, ignore=_dangling, dirs_exist_ok=True)
            elif not file.is_file():
                continue
            elif file.name == ARCHIVE:
                with tarfile.open(file) as archive:
                    archive.extractall(directory, filter="data")
            else:
                shutil.copyfile(file, directory / file.name)
    except (OSError, tarfile.TarError) as error:
        raise TaskError(f"program.source cannot be read: {error}") from error
    os.chdir(directory)


def _dangling(folder: str, names: list[str]) -> list[str]:
    """Links to nothing. (shutil's own option takes a relative link for one from the working directory.)"""
    return [name for name in names if not Path(folder, name).exists()]
