# SPDX-License-Identifier: Apache-2.0
"""The project's images, unpacked once by containerd and given to every node of every start as links.

An import of the trainer's archive takes most of a minute and 4 GB for each node; links take no time and no room. That
is safe, because containerd never writes to what it has unpacked: a container's changes go into a layer of its own. The
store is `${XDG_CACHE_HOME:-~/.cache}/dtjob/containerd/`, and whoever uses it holds the machine's lock (node.py).
"""

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from tools.cluster.program import Program
from tools.images import Image
from tools.node import containerd
from tools.node.namespaces import Namespaces
from tools.programs import cache

_CONFIG = """
version = 2
root = "{root}"
state = "{directory}/store"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/store-opt"
[plugins."io.containerd.gc.v1.scheduler"]
  startup_delay = "24h"
"""
"""Its garbage collector waits until it is asked: an import leaves out the layers that are there, and a collection after
the old image's removal would take them before the new one is unpacked (4 of 60 imports)."""
_SNAPSHOTS = "io.containerd.snapshotter.v1.overlayfs/snapshots"


def root() -> Path:
    """The store: a containerd's root directory."""
    return cache() / "containerd"


def contents() -> dict[str, str]:
    """What the store holds: the images' references with their ids."""
    try:
        found: dict[str, str] = json.loads(_list().read_text())
    except (OSError, ValueError):
        return {}
    return found


def identity(image: Image) -> str | None:
    """The id of the image that its archive holds; None where there is no archive, or nobody wrote its id."""
    try:
        return image.archive.with_suffix(".id").read_text() if image.archive.exists() else None
    except OSError:
        return None


def update(namespaces: Namespaces, images: Iterable[Image]) -> None:
    """Bring what is built of these images into the store, where it holds other ones. Raises as a node's start does."""
    wanted = {image: found for image in images if (found := identity(image))}
    held = contents()
    if all(held.get(image.reference) == found for image, found in wanted.items()):
        return
    if not held:
        shutil.rmtree(root(), ignore_errors=True)  # an update that was interrupted
    root().mkdir(exist_ok=True)
    _list().unlink(missing_ok=True)
    directory = namespaces.directory
    socket, config = directory / "store.sock", directory / "store.toml"
    config.write_text(_CONFIG.format(root=root(), directory=directory, socket=socket))
    program = Program("store", namespaces.entering("containerd", f"--config={config}"), directory)
    try:
        program.wait_until(lambda: containerd.answers(socket))
        for image, found in wanted.items():
            if held.get(image.reference) != found:
                containerd.ctr(namespaces, socket, "images", "import", str(image.archive))
                held[image.reference] = found
        containerd.ctr(namespaces, socket, "leases", "create", "--id=dtjob")
        containerd.ctr(namespaces, socket, "leases", "delete", "--sync", "dtjob")  # collects what old images leave
    finally:
        program.stop()
    _list().write_text(json.dumps(held))


def give(target: Path) -> None:
    """Make `target`, a new directory, a containerd's root with all that the store holds."""
    if not contents():
        target.mkdir(parents=True)
        return
    snapshots = root() / _SNAPSHOTS

    def left_out(directory: str, names: list[str]) -> list[str]:
        return names if Path(directory) == snapshots else []

    shutil.copytree(root(), target, ignore=left_out, copy_function=_link)
    for snapshot in snapshots.iterdir():
        (target / _SNAPSHOTS / snapshot.name).symlink_to(snapshot)


def _link(source: str, target: str) -> None:
    """A hard link, but a copy of a database: those are written to."""
    if source.endswith(".db"):
        shutil.copy2(source, target)
    else:
        Path(target).hardlink_to(source)


def _list() -> Path:
    return root() / "dtjob-images.json"
