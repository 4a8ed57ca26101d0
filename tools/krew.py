# SPDX-License-Identifier: Apache-2.0
"""The kubectl plugin for krew: an archive and its manifest.

    python -m tools.krew 0.1.0 https://example.com/dtjob/0.1.0 dist

writes dist/kubectl-dtjob.tar.gz, which belongs at URL/kubectl-dtjob.tar.gz, and dist/dtjob.yaml for `kubectl krew
install --manifest`. The plugin runs the Python package dtjob, which pip installs.
"""

import gzip
import hashlib
import io
import sys
import tarfile
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
ARCHIVE, MANIFEST, PLUGIN = "kubectl-dtjob.tar.gz", "dtjob.yaml", "kubectl-dtjob"
SCRIPT = """#!/bin/sh
python=$(command -v python3) || { echo "kubectl dtjob needs python3" >&2; exit 2; }
if ! "$python" -c 'import dtjob' 2>/dev/null; then
  echo "kubectl dtjob needs the Python package: pip install dtjob" >&2
  exit 2
fi
exec "$python" -c 'import sys; sys.argv[0] = "kubectl-dtjob"; from dtjob.cli.main import main; main()' "$@"
"""


def archive() -> bytes:
    """The plugin and the licence. The same bytes each time."""
    files = {PLUGIN: (SCRIPT.encode(), 0o755), "LICENSE": ((ROOT / "LICENSE").read_bytes(), 0o644)}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(made.getvalue(), mtime=0)


def manifest(version: str, url: str, content: bytes) -> dict[str, Any]:
    """The manifest of krew for this archive at this address."""
    systems = {"matchExpressions": [{"key": "os", "operator": "In", "values": ["linux", "darwin"]}]}
    platform = {
        "selector": systems,
        "uri": f"{url.rstrip('/')}/{ARCHIVE}",
        "sha256": hashlib.sha256(content).hexdigest(),
        "bin": PLUGIN,
        "files": [{"from": name, "to": "."} for name in (PLUGIN, "LICENSE")],
    }
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "dtjob"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Distributed TensorFlow training jobs",
            "description": "Submits, watches and changes DistributedTrainingJobs, and fetches their models.",
            "caveats": "The plugin runs the Python package dtjob: pip install dtjob.",
            "platforms": [platform],
        },
    }


def main(version: str, url: str, directory: str) -> None:
    content = archive()
    Path(directory).mkdir(parents=True, exist_ok=True)
    (Path(directory) / ARCHIVE).write_bytes(content)
    (Path(directory) / MANIFEST).write_text(yaml.safe_dump(manifest(version, url, content), sort_keys=False))


if __name__ == "__main__":
    main(*sys.argv[1:4])
