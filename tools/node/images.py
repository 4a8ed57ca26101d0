# SPDX-License-Identifier: Apache-2.0
"""Images of a few static programs, written without a build tool and without a network."""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path


def write(archive: Path, name: str, files: dict[str, Path], command: list[str]) -> None:
    """Write the image `name` as a docker-archive: these files (path in the image -> file here), run as uid 65532."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for path, source in files.items():
            _add(tar, path, source.read_bytes(), 0o755)
    digest = hashlib.sha256(layer.getvalue()).hexdigest()
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()],
        "os": "linux",
        "config": {"Cmd": command, "User": "65532:65532", "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": [f"{digest}.tar"]}]
    with tarfile.open(archive, "w") as tar:
        _add(tar, f"{digest}.tar", layer.getvalue())
        _add(tar, "config.json", json.dumps(config).encode())
        _add(tar, "manifest.json", json.dumps(manifest).encode())


def _add(tar: tarfile.TarFile, path: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))
