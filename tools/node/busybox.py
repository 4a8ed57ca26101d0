# SPDX-License-Identifier: Apache-2.0
"""A small image of busybox, and pods of it under the restricted profile, for tests of a cluster itself."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.cluster.rest import Api, Object
from tools.images import Image
from tools.node import images

APPLETS = ("sh", "echo", "cat", "httpd", "id", "kill", "sleep", "wget", "true")
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
FOREVER = ("/bin/sh", "-c", "trap 'exit 0' TERM; echo hello; while true; do sleep 1 & wait $!; done")
"""A command that says hello and ends when told to."""


@dataclass(frozen=True)
class Busybox(Image):
    """The image in its archive."""

    file: Path

    @property
    def archive(self) -> Path:
        """Where `write` left it."""
        return self.file


def write(directory: Path, **programs: Path) -> Busybox:
    """Write the image with these programs besides, each by its name in /bin."""
    image = Busybox("busybox", "", directory / "busybox.tar")
    busybox = Path(shutil.which("busybox") or "")
    files = {f"bin/{name}": busybox for name in APPLETS} | {f"bin/{name}": path for name, path in programs.items()}
    images.write(image.archive, image.reference, files, ["/bin/sh"])
    return image


def pod(name: str, image: str, *command: str, claim: str = "", **spec: Any) -> Object:
    """A pod of one container, behind the headless Service `group`; with `claim`, that volume is at /volume."""
    container: Object = {"name": "main", "image": image, "command": list(command), "securityContext": RESTRICTED}
    if claim:
        container["volumeMounts"] = [{"name": "volume", "mountPath": "/volume"}]
        spec["volumes"] = [{"name": "volume", "persistentVolumeClaim": {"claimName": claim}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"group": "group"}},
        "spec": {"hostname": name, "subdomain": "group", "restartPolicy": "Never", "containers": [container], **spec},
    }


def in_phase(api: Api, namespace: str, name: str, phase: str) -> Object:
    """The pod, as soon as it is in this phase."""
    found = api.wait_for("pods", namespace, name, lambda one: one and one["status"].get("phase") == phase)
    assert found is not None
    return found


def enforce_restricted(api: Api, namespace: str) -> None:
    """Hold the namespace's pods to the restricted Pod Security profile."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.patch("namespaces", None, namespace, {"metadata": {"labels": labels}})
