# SPDX-License-Identifier: Apache-2.0
"""`make crd`: the files in the repository are what the models and the rules make."""

from pathlib import Path

import pytest

from tools import definition as program

FILES = program.files()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_file_is_fresh(file: Path) -> None:
    assert file.read_text() == FILES[file], "run `make crd`"


def test_check_notices_a_stale_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {tmp_path / "crds" / "a.yaml": "a: 1\n", tmp_path / "page.md": "# A page\n"}
    monkeypatch.setattr(program, "files", lambda: made)
    assert program.main(["--check"]) == 1
    assert program.main([]) == 0
    assert program.main(["--check"]) == 0
    assert program.main(["--nonsense"]) == 2
    (tmp_path / "page.md").write_text("stale")
    assert program.main(["--check"]) == 1
