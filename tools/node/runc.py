# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a built image as a pod would: runc, its own namespaces, no capabilities, optionally read-only.

For images in the store of buildah, or of Docker with layers that overlay. The container has a network of its own with
nothing in it but loopback.
"""

import contextlib
import json
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.images import Engine, Image


class Container:
    """An image's file system, mounted; close() removes it and what was written to it."""

    def __init__(self, engine: Engine, image: Image) -> None:
        self._undo = contextlib.ExitStack()
        if engine.name == "buildah":
            described = json.loads(engine("inspect", "--type", "image", image.reference))
            self.config: dict[str, Any] = described["OCIv1"]["config"]
            name = engine("from", image.reference)
            self._undo.callback(engine, "rm", name)
            self.root = Path(engine("mount", name))
            self._undo.callback(engine, "umount", name)
        else:
            [described] = json.loads(engine("image", "inspect", image.reference))
            self.config = described["Config"]
            self.root = self._mounted(described["GraphDriver"]["Data"])

    def _mounted(self, layers: Mapping[str, str]) -> Path:
        """Docker's layers, with a directory of ours above them."""
        home = Path(self._undo.enter_context(tempfile.TemporaryDirectory(prefix="dtjob-container-")))
        for name in ("root", "upper", "work"):
            (home / name).mkdir()
        below = ":".join(layers[name] for name in ("UpperDir", "LowerDir") if name in layers)
        options = f"lowerdir={below},upperdir={home / 'upper'},workdir={home / 'work'}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, str(home / "root")], check=True)
        self._undo.callback(subprocess.run, ["umount", str(home / "root")], check=True)
        return home / "root"

    def run(
        self,
        bundle: Path,
        command: Sequence[str] | None = None,
        *,
        uid: int = 1000,
        read_only: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run the command, or the image's own, as this uid; `bundle` is an empty directory."""
        subprocess.run(["runc", "spec"], cwd=bundle, check=True)
        file = bundle / "config.json"
        spec = json.loads(file.read_text())
        variables = [f"{name}={value}" for name, value in (environment or {}).items()]
        spec["process"] |= {
            "terminal": False,
            "user": {"uid": uid, "gid": uid},
            "args": list(command or [*self.config.get("Entrypoint", []), *self.config.get("Cmd", [])]),
            "env": [*self.config["Env"], *variables],
            "cwd": self.config["WorkingDir"],
            "capabilities": {},
            "noNewPrivileges": True,
            "rlimits": [],
        }
        spec["root"] = {"path": str(self.root), "readonly": read_only}
        file.write_text(json.dumps(spec))
        identity = f"dtjob-test-{uuid.uuid4().hex[:12]}"
        try:
            return subprocess.run(
                ["runc", "run", "--bundle", str(bundle), identity],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        finally:
            subprocess.run(["runc", "delete", "--force", identity], capture_output=True, check=False)

    def close(self) -> None:
        """Remove the container."""
        self._undo.close()
