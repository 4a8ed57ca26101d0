# SPDX-License-Identifier: Apache-2.0
"""The files of the program that come from a ConfigMap (program.source): copied into the working directory."""

import os
import shutil
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dtjob_trainer.errors import TaskError

VARIABLE = "DTJOB_SOURCE"
ARCHIVE = "source.tar.gz"
"""The key whose value is an archive of files and folders. Every other key is a file."""
_NAME = "dtjob-source"


def enter(environ: Mapping[str, str]) -> None:
    """Copy the files into a directory of this container and make it the working directory. Nothing if there are none.

    The mount is read-only, and programs write beside themselves. Raises TaskError if the files cannot be read.
    """
    mounted = environ.get(VARIABLE)
    if not mounted:
        return
    directory = Path(tempfile.gettempdir()) / _NAME
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        for file in sorted(Path(mounted).iterdir()):
            if file.name.startswith("..") or not file.is_file():  # how the kubelet swaps versions
                continue
            if file.name == ARCHIVE:
                with tarfile.open(file) as archive:
                    archive.extractall(directory, filter="data")
            else:
                shutil.copyfile(file, directory / file.name)
    except (OSError, tarfile.TarError) as error:
        raise TaskError(f"program.source cannot be read: {error}") from error
    os.chdir(directory)
