# SPDX-License-Identifier: Apache-2.0
"""The form of .dtjobignore is that of .gitignore."""

from pathlib import Path

import pytest

from dtjob.manifests.ignored import files_of

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
