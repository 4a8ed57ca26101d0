# SPDX-License-Identifier: Apache-2.0
"""Which files outlive the pod."""

import tempfile
from pathlib import Path


def is_on_volume(path: Path) -> bool:
    """Whether `path`, which may not exist yet, is on another file system than the container's own files."""
    above = next(each for each in path.absolute().parents if each.is_dir())
    return above.stat().st_dev != Path("/").stat().st_dev


def is_temporary(path: Path) -> bool:
    """Whether `path` is in the directory for temporary files."""
    return path.absolute().is_relative_to(tempfile.gettempdir())
