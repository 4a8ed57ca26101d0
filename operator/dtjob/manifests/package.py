# SPDX-License-Identifier: Apache-2.0
"""The files of a program as a ConfigMap: a script as it is, a folder as an archive."""

import base64
import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

from dtjob.bad_input import BadInput

FILE = ".dtjobignore"
"""Has the form of .gitignore."""
ALWAYS = (".git/", ".dtjob/", "__pycache__/", "*.pyc", ".venv/", ".mypy_cache/", ".pytest_cache/", ".ruff_cache/", FILE)
"""Patterns that hold without a file. A later line that begins with ! brings a file back."""
LARGEST_BYTES = 900 * 1024
"""Of all files, compressed. An API server takes 1 MiB for a ConfigMap."""
ARCHIVE = "source.tar.gz"
MADE_BY_US = {"app.kubernetes.io/created-by": "dtjob-submit"}
"""Labels of the ConfigMaps of dtjob submit. It replaces no other one."""
OTHER_WAYS = (
    "build an image with the files, keep them in a volume (replicaSpecs.*.template), or fetch them with git in an init "
    "container"
)


@dataclass(frozen=True)
class Package:
    """What travels."""

    entrypoint: str
    requirements: str | None
    """The requirements file, by its name in the package."""
    data: dict[str, str]
    """Files as text, by name."""
    archive: bytes | None = None

    def config_map(self, name: str, namespace: str | None) -> dict[str, Any]:
        """The ConfigMap with the files."""
        binary = {} if self.archive is None else {ARCHIVE: base64.b64encode(self.archive).decode()}
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(MADE_BY_US)},
            "immutable": True,
            **({"data": self.data} if self.data else {}),
            **({"binaryData": binary} if binary else {}),
        }


def package(script: Path, source: Path | None, requirements: Path | None) -> Package:
    """The package of a script, or of a folder that has it. Raises BadInput."""
    for option, file in (("", script), ("--requirements: ", requirements)):
        if file is not None and not file.is_file():
            raise BadInput(f"{option}{file}: is no file")
    return _of_script(script, requirements) if source is None else _of_folder(script, source, requirements)


def _of_script(script: Path, requirements: Path | None) -> Package:
    files = {script.name: _text(script)}
    if requirements is not None:
        if requirements.name == script.name:
            raise BadInput(f"--requirements: {requirements} has the name of the script")
        files[requirements.name] = _text(requirements)
    size = sum(len(text.encode()) for text in files.values())
    if size > LARGEST_BYTES:
        raise BadInput(_too_large(script, size))
    return Package(script.name, requirements.name if requirements else None, files)


def _of_folder(script: Path, source: Path, requirements: Path | None) -> Package:
    if not source.is_dir():
        raise BadInput(f"--source: {source} is no folder")
    entrypoint = _inside(script, source)
    if entrypoint is None:
        raise BadInput(f"--source: {script} is not in the folder {source}")
    names = [path.as_posix() for path in files_of(source)]
    if entrypoint not in names:
        raise BadInput(f"{FILE}: ignores the script {entrypoint}; add !{entrypoint} to it")
    more: dict[str, Path] = {}
    wanted = None
    if requirements is not None:
        wanted = _inside(requirements, source)
        if wanted not in names:
            wanted = requirements.name
            if wanted in names:
                raise BadInput(f"--requirements: the folder {source} has another {wanted}; rename one of them")
            more[wanted] = requirements
    archive = _archive({**{name: source / name for name in names}, **more})
    if len(archive) > LARGEST_BYTES:
        raise BadInput(_too_large(source, len(archive)))
    return Package(entrypoint, wanted, {}, archive)


def files_of(directory: Path) -> Iterator[Path]:
    """The files of a folder that travel, relative to it, in the order of their names."""
    file = directory / FILE
    lines = [*ALWAYS, *(file.read_text("utf-8").splitlines() if file.is_file() else ())]
    # To pathspec, `!a/` is weaker than `*` before it, and `a/**` matches the folder itself: it is asked as a file.
    of_folders = [line.rstrip(" /") if line.rstrip().endswith("/") else line for line in lines]
    of_files = [line for line in lines if line.startswith("!") or not line.rstrip().endswith("/")]
    try:
        files, folders = GitIgnoreSpec.from_lines(of_files), GitIgnoreSpec.from_lines(of_folders)
    except (ValueError, re.error) as error:
        raise BadInput(f"{file}: {error}") from None
    return _below(directory, directory, files, folders)


def _below(root: Path, folder: Path, files: GitIgnoreSpec, folders: GitIgnoreSpec) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        path, is_folder = entry.relative_to(root), entry.is_dir()
        if (folders if is_folder else files).match_file(path.as_posix()):
            continue
        if is_folder:
            yield from _below(root, entry, files, folders)
        elif entry.is_file():
            yield path


def _inside(file: Path, folder: Path) -> str | None:
    """The path of the file in the folder, None if it is outside. A path that only exists in the folder is one too."""
    try:
        return file.resolve().relative_to(folder.resolve()).as_posix()
    except ValueError:
        return None


def _archive(files: dict[str, Path]) -> bytes:
    """The same bytes for the same files."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, file in sorted(files.items()):
            content = file.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if file.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(made.getvalue(), mtime=0)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"{file}: is not a text file in UTF-8") from None


def _too_large(what: Path, size: int) -> str:
    return (
        f"{what}: has {-(-size // 1024)} KiB compressed, and a ConfigMap takes {LARGEST_BYTES // 1024}; leave files "
        f"out with {FILE}, or {OTHER_WAYS}"
    )
