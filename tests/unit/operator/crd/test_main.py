"""`python -m dtjob.crd`: the files in the repository are what the models and the rules make."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from dtjob.crd import __main__ as program
from dtjob.crd import definition


def test_the_file_is_fresh() -> None:
    assert program.FILE.read_text() == definition.text(), "run `python -m dtjob.crd`"
    assert yaml.safe_load(definition.text()) == definition.crd()


def test_the_charts_copy_is_fresh_and_kept_at_uninstall() -> None:
    assert program.CHART_FILE.read_text() == program.files()[program.CHART_FILE], "run `python -m dtjob.crd`"
    copy = yaml.safe_load(program.CHART_FILE.read_text())
    assert copy["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert copy == definition.crd()


def test_check_notices_a_stale_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "FILE", tmp_path / "crd.yaml")
    monkeypatch.setattr(program, "CHART_FILE", tmp_path / "chart.yaml")
    assert program.main(["--check"]) == 1
    assert program.main([]) == 0
    assert program.main(["--check"]) == 0
    assert program.main(["--nonsense"]) == 2
