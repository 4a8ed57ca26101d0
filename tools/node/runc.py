# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a built image as a pod would: runc, its own namespaces, no capabilities, optionally read-only.

For images in buildah's store. The container has a network of its own with nothing in it but loopback.
"""

import json
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.images import Engine, Image


class Container:
    """An image's file system, mounted; close() removes it and what was written to it."""

    def __init__(self, buildah: Engine, image: Image) -> None:
        self._buildah = buildah
        described = json.loads(buildah("inspect", "--type", "image", image.reference))
        self.config: dict[str, Any] = described["OCIv1"]["config"]
        self._name = buildah("from", image.reference)
        self.root = Path(buildah("mount", self._name))

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
        self._buildah("umount", self._name)
        self._buildah("rm", self._name)
