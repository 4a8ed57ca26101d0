# SPDX-License-Identifier: Apache-2.0
"""What `kind build node-image` is given; `make kind` builds an image where no registry answers."""

import json
import tarfile
from pathlib import Path

import pytest

from tools.kind import node_image
from tools.programs import Tool


def test_an_archive_begins_with_the_whole_names_of_its_images(tmp_path: Path) -> None:
    """kind stops at the first list. Docker's own is last, and leaves out the host of its default registry."""
    saved, indexed = tmp_path / "saved.tar", tmp_path / "indexed.tar"
    for name in ("manifest.json", "layer.tar", "repositories"):
        (tmp_path / name).write_text(name)
    with tarfile.open(saved, "w") as archive:
        for name in ("manifest.json", "layer.tar", "repositories"):
            archive.add(tmp_path / name, name)
    node_image.index(saved, indexed, ["example.org/a/one:v1", "example.org:5000/two:v2", "example.org/a/one:v3"])
    with tarfile.open(indexed) as archive:
        assert archive.getnames() == ["repositories", "manifest.json", "layer.tar"]
        first, layer = archive.extractfile("repositories"), archive.extractfile("layer.tar")
        assert first
        assert layer
        assert json.load(first) == {"example.org/a/one": {"v1": "", "v3": ""}, "example.org:5000/two": {"v2": ""}}
        assert layer.read() == b"layer.tar"


def test_images_are_named_by_kubeadm_and_by_kinds_sources(tmp_path: Path) -> None:
    """kubeadm's pause is none of them: the containers' runtime asks for another."""
    sources = {
        "pkg/build/nodeimage/const_cni.go": 'const kindnetdImage = "example.org/kindnetd:v1"\n',
        "pkg/build/nodeimage/const_storage.go": 'const storageProvisionerImage = "example.org/provisioner:v2"\n'
        'const storageHelperImage = "example.org/helper:v3"\n',
        "images/base/files/etc/containerd/config.toml": '  sandbox_image = "example.org/pause:3.10"\n',
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    listed = "example.org/kube-proxy:v1.36.3\nexample.org/pause:3.10.1\n"
    names = ["kube-proxy:v1.36.3", "kindnetd:v1", "provisioner:v2", "helper:v3", "pause:3.10"]
    assert node_image.asked_for(listed, tmp_path) == [f"example.org/{name}" for name in names]


def test_other_programs_make_another_image(monkeypatch: pytest.MonkeyPatch) -> None:
    before = node_image.reference()
    monkeypatch.setattr(Tool, "version", property(lambda tool: "v9.9.9"))
    assert node_image.reference().startswith("dtjob-kind-node:v9.9.9-")
    assert node_image.reference() != before
