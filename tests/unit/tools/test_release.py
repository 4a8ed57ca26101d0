# SPDX-License-Identifier: Apache-2.0
"""`make release`: the packages of the SBOM, and checksums."""

import hashlib
from pathlib import Path

from tools.release import FILES, ROOT, runtime, sums


def test_the_operator_needs_its_dependencies_and_no_tool_of_the_tests() -> None:
    found = runtime(["dtjob[operator]"])
    assert {"dtjob", "kopf", "aiohttp", "yarl"} <= set(found)
    assert not {"pytest", "mypy", "tensorflow_cpu"} & set(found)


def test_the_trainer_needs_tensorflow_by_its_extra() -> None:
    assert "tensorflow_cpu" in runtime(["dtjob-trainer[cpu]"])
    assert "tensorflow_cpu" not in runtime(["dtjob-trainer"])


def test_checksums_are_of_every_file_but_their_own(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("b")
    (tmp_path / "a").write_text("a")
    (tmp_path / "SHA256SUMS").write_text("old")
    digest = hashlib.sha256(b"a").hexdigest()
    assert sums(tmp_path).splitlines()[0] == f"{digest}  a"
    assert [line.split()[1] for line in sums(tmp_path).splitlines()] == ["a", "b"]


def test_the_files_of_a_release_are_there() -> None:
    assert all((ROOT / file).is_file() for file in FILES)
