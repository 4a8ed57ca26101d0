# SPDX-License-Identifier: Apache-2.0
"""A launcher that is there before the manifest is read: it imports TensorFlow while dtjob imports what reads it."""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from dtjob.local.processes.inherited import inherited, read_by_imports
from dtjob.local.processes.launcher import Launcher


@contextlib.contextmanager
def launcher_ahead(manifest: Path) -> Iterator[Launcher | None]:
    """A launcher for tasks whose manifest sets no variables, as few do. It is ended with this at the latest.

    None if `manifest` is no file, or this machine cannot run it anyway, which is for others to tell.
    """
    launcher = None
    if sys.platform == "linux" and manifest.is_file() and importlib.util.find_spec("dtjob_trainer"):
        with contextlib.suppress(OSError):
            launcher = Launcher(read_by_imports(inherited(os.environ)))
    try:
        yield launcher
    finally:
        if launcher is not None:
            launcher.close()
