# SPDX-License-Identifier: Apache-2.0
"""The plugin of krew: its manifest fits its archive, and it runs the command line."""

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import yaml

from dtjob import __version__
from tools import krew


def test_the_manifest_fits_the_archive_and_the_plugin_runs(tmp_path: Path) -> None:
    krew.main("1.2.3", "https://example.com/1.2.3/", str(tmp_path))
    spec = yaml.safe_load((tmp_path / krew.MANIFEST).read_text())["spec"]
    (platform,) = spec["platforms"]
    assert spec["version"] == "v1.2.3"
    assert platform["uri"] == "https://example.com/1.2.3/kubectl-dtjob.tar.gz"
    assert platform["sha256"] == hashlib.sha256((tmp_path / krew.ARCHIVE).read_bytes()).hexdigest()
    with tarfile.open(tmp_path / krew.ARCHIVE) as archive:
        assert archive.getnames() == [one["from"] for one in platform["files"]]
        archive.extractall(tmp_path, filter="data")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)}
    plugin = [str(tmp_path / platform["bin"])]
    said = subprocess.run([*plugin, "version"], env=environ, capture_output=True, text=True, check=True)
    assert said.stdout == f"dtjob {__version__}\n"
    said = subprocess.run([*plugin, "top", "-h"], env=environ, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("Usage: kubectl dtjob top")
