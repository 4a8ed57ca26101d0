# SPDX-License-Identifier: Apache-2.0
"""tools.node.image_store: images in a real containerd, which several nodes then share."""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.images import Image
from tools.node import containerd, image_store
from tools.node.namespaces import Namespaces


@pytest.fixture
def namespaces(node_programs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Namespaces]:
    """Namespaces of a node, and a cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache" / "dtjob" / "images").mkdir(parents=True)
    started = Namespaces(tmp_path)
    try:
        started.start()
    except AssertionError as error:
        pytest.skip(f"no namespaces: {error}")
    yield started
    started.stop()


def test_layers_of_the_image_before_are_there_until_the_new_one_is_unpacked(
    namespaces: Namespaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[set[str]] = []
    original = containerd.ctr

    def observed(within: Namespaces, socket: Path, *arguments: str) -> str:
        said = original(within, socket, *arguments)
        if arguments[0] == "leases":
            held.append(set(original(within, socket, "snapshots", "list").split()))
        return said

    monkeypatch.setattr(containerd, "ctr", observed)
    image = Image("trainer", "Dockerfile")
    first, second = ([layer("base"), layer(name)] for name in ("first", "second"))
    for layers in (first, second):
        write(image, layers)
        image_store.update(namespaces, [image])
    _, before, while_updated, after = held
    assert image_store.contents() == {image.reference: image.archive.with_suffix(".id").read_text()}
    assert chain(*first) in (before & while_updated) - after
    assert chain(*second) in while_updated & after
    assert chain(first[0]) in after


def layer(name: str) -> bytes:
    return archive({name: name.encode()})


def archive(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return target.getvalue()


def write(image: Image, layers: list[bytes]) -> None:
    """Make the archive of an image with these layers, as `docker save` does, and the id beside it."""
    names = {f"{digest(each)}.tar": each for each in layers}
    rootfs = {"type": "layers", "diff_ids": [f"sha256:{digest(each)}" for each in layers]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}).encode()
    manifest = [{"Config": "config.json", "RepoTags": [image.reference], "Layers": list(names)}]
    image.archive.write_bytes(archive({**names, "config.json": config, "manifest.json": json.dumps(manifest).encode()}))
    image.archive.with_suffix(".id").write_text(digest(config))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def chain(*layers: bytes) -> str:
    """The name of the snapshot of these layers: the chain ID of the OCI image specification."""
    name = f"sha256:{digest(layers[0])}"
    for each in layers[1:]:
        name = f"sha256:{digest(f'{name} sha256:{digest(each)}'.encode())}"
    return name
