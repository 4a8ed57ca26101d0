# SPDX-License-Identifier: Apache-2.0
"""Files of program.source become the working directory, which can be written to."""

import io
import tarfile
import tempfile
from pathlib import Path

import pytest

from dtjob_trainer.contract import source
from dtjob_trainer.errors import TaskError


@pytest.fixture
def mounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As the kubelet mounts a ConfigMap: links to files in a folder that it swaps."""
    version = tmp_path / "mount" / "..2026"
    version.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (version / "train.py").write_text("print(1)")
    (tmp_path / "mount" / "..data").symlink_to(version)
    (tmp_path / "mount" / "train.py").symlink_to("..data/train.py")
    return tmp_path / "mount"


def archive(file: Path, name: str) -> None:
    with tarfile.open(file, "w:gz") as made:
        entry = tarfile.TarInfo(name)
        entry.size = 1
        made.addfile(entry, io.BytesIO(b"x"))


def test_files_and_archives_are_there_and_can_be_written(mounted: Path) -> None:
    archive(mounted / source.ARCHIVE, "data/a.txt")
    source.enter({source.VARIABLE: str(mounted)})
    assert sorted(str(one) for one in Path().rglob("*")) == ["data", "data/a.txt", "train.py"]
    Path("model.keras").write_text("saved")


def test_folders_of_a_volume_are_copied_with_what_their_links_name(mounted: Path) -> None:
    (mounted / "lib" / "deep").mkdir(parents=True)
    (mounted / "lib" / "deep" / "a.py").write_text("A = 1")
    (mounted / "lib" / "link.py").symlink_to("deep/a.py")
    (mounted / "lib" / "dangling").symlink_to("nowhere")
    (mounted / "lost+found").mkdir(mode=0)
    for _ in range(2):
        source.enter({source.VARIABLE: str(mounted)})
    assert Path("lib/link.py").read_text() == "A = 1"
    assert sorted(one.name for one in Path().iterdir()) == ["lib", "train.py"]


def test_without_a_source_nothing_changes(mounted: Path) -> None:
    source.enter({})
    assert Path.cwd() == mounted.parent


@pytest.mark.parametrize("name", ["../outside", "/outside"])
def test_an_archive_writes_nothing_outside(mounted: Path, name: str) -> None:
    archive(mounted / source.ARCHIVE, name)
    if name.startswith("/"):
        source.enter({source.VARIABLE: str(mounted)})
        assert Path("outside").exists()
    else:
        with pytest.raises(TaskError, match=r"program.source cannot be read"):
            source.enter({source.VARIABLE: str(mounted)})


def test_a_volume_that_kubernetes_removed_from_the_pod_is_told(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"there is no .*/digits; .* its volume is an image, use Kubernetes 1\.35"):
        source.enter({source.VARIABLE: str(tmp_path / "dtjob-source" / "digits")})


@pytest.mark.parametrize(("folder", "words"), [("", ""), ("no-such-folder", "no-such-folder")])
def test_the_error_of_files_that_cannot_be_read_names_the_field(mounted: Path, folder: str, words: str) -> None:
    (mounted / source.ARCHIVE).write_text("no archive")
    with pytest.raises(TaskError, match=rf"program.source cannot be read: .*{words}"):
        source.enter({source.VARIABLE: str(mounted / folder)})
