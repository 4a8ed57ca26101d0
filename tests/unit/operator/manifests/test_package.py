# SPDX-License-Identifier: Apache-2.0
"""What travels of a script or a folder, and what is too large."""

import io
import os
import tarfile
from pathlib import Path

import pytest

from dtjob.bad_input import BadInput
from dtjob.manifests.package import Package, files_of, package


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "project" / "lib" / "__pycache__").mkdir(parents=True)
    for name in ("train.py", "lib/model.py", "lib/__pycache__/model.pyc", "data.bin", "notes.txt"):
        (tmp_path / "project" / name).write_text(name)
    return tmp_path / "project"


def names(one: Package) -> list[str]:
    assert one.archive is not None
    with tarfile.open(fileobj=io.BytesIO(one.archive)) as archive:
        return archive.getnames()


def test_a_script_travels_as_text(folder: Path) -> None:
    (folder.parent / "more.txt").write_text("numpy")
    one = package(folder / "train.py", None, folder.parent / "more.txt")
    assert (one.entrypoint, one.requirements) == ("train.py", "more.txt")
    assert one.config_map("a", "b")["data"] == {"train.py": "train.py", "more.txt": "numpy"}
    assert "binaryData" not in one.config_map("a", None)


def test_a_folder_travels_without_what_it_ignores(folder: Path) -> None:
    (folder / ".dtjobignore").write_text("# large\n*.bin\nnotes.*\n!notes.txt\n")
    one = package(folder / "train.py", folder, None)
    assert names(one) == ["lib/model.py", "notes.txt", "train.py"]
    assert one.entrypoint == "train.py"


def test_the_same_files_are_the_same_bytes(folder: Path) -> None:
    first = package(folder / "train.py", folder, None).archive
    os.utime(folder / "train.py", (1, 1))
    assert package(folder / "train.py", folder, None).archive == first


def test_requirements_from_elsewhere_come_along(folder: Path) -> None:
    (folder.parent / "more.txt").write_text("numpy")
    one = package(folder / "train.py", folder, folder.parent / "more.txt")
    assert one.requirements == "more.txt"
    assert "more.txt" in names(one)
    assert package(folder / "train.py", folder, folder / "notes.txt").requirements == "notes.txt"


@pytest.mark.parametrize("source", [False, True])
def test_the_error_of_a_package_that_is_too_large_names_the_alternatives(folder: Path, source: bool) -> None:
    (folder / "train.py").write_bytes(os.urandom(600 * 1024).hex().encode())
    (folder / "data.bin").write_bytes(os.urandom(400 * 1024))
    with pytest.raises(BadInput, match=r"KiB compressed, and a ConfigMap takes 900; leave files out with .dtjobignore"):
        package(folder / "train.py", folder if source else None, None)


@pytest.mark.parametrize(
    ("line", "said"),
    [*((bad, r"\.dtjobignore: ") for bad in ("!", "a\\", "[z-a]")), ("*.py\n", "ignores the script train.py")],
)
def test_a_line_that_is_no_pattern_or_ignores_the_script_is_refused(folder: Path, line: str, said: str) -> None:
    (folder / ".dtjobignore").write_text(line)
    with pytest.raises(BadInput, match=said):
        package(folder / "train.py", folder, None)


_FILES = ("a.py", "b/a.py", "b/c/d.txt", "build/x", "b/build/y", "w.log", "b/w.log")


@pytest.mark.parametrize(
    ("lines", "ignored"),
    [
        ("", set()),
        ("a.py", {"a.py", "b/a.py"}),
        ("/a.py", {"a.py"}),
        ("build/", {"build/x", "b/build/y"}),
        ("/build/", {"build/x"}),
        ("*.log\n!b/w.log", {"w.log"}),
        ("b/*", {"b/a.py", "b/c/d.txt", "b/build/y", "b/w.log"}),
        ("**/d.txt", {"b/c/d.txt"}),
        ("b/**", {"b/a.py", "b/c/d.txt", "b/build/y", "b/w.log"}),
        ("[ab].py\n# w.log\n?.log", {"a.py", "b/a.py", "w.log", "b/w.log"}),
        ("*\n!*/\n!*.py", set(_FILES) - {"a.py", "b/a.py"}),
        ("b/**\n!b/w.log", {"b/a.py", "b/c/d.txt", "b/build/y"}),
        ("build\n!b/", {"build/x", "b/build/y"}),
        ("b/**/", {"b/c/d.txt", "b/build/y"}),
    ],
)
def test_lines_ignore_what_git_ignores(tmp_path: Path, lines: str, ignored: set[str]) -> None:
    for name in _FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".dtjobignore").write_text(lines)
    assert {str(one) for one in files_of(tmp_path)} == set(_FILES) - ignored


def test_caches_and_version_control_are_left_out_of_the_package(tmp_path: Path) -> None:
    for name in (".git/HEAD", "__pycache__/a.pyc", ".venv/x", ".dtjob/run", "a.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert list(files_of(tmp_path)) == []
