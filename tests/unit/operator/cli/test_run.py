"""`dtjob run`: what it refuses to begin. What it does is in tests/trainer."""

from __future__ import annotations

from tests.unit.operator.cli.manifest import GOOD


def test_run_says_what_a_machine_without_a_cluster_cannot(dtjob, good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = dtjob("run", good)
    assert code == 2
    assert "spec.program.entry: digits.py is no file below" in err
    image_only = tmp_path / "image.yaml"
    lines = [line for line in GOOD.splitlines() if "program:" not in line]
    image_only.write_text("\n".join(lines).replace(", everySteps: 100", ""))
    code, _, err = dtjob("run", image_only)
    assert code == 2
    assert "spec.program: needed by `dtjob run`" in err


def test_run_says_where_the_work_directory_cannot_be(dtjob, good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits.py").touch()
    (tmp_path / "file").touch()
    code, _, err = dtjob("run", good, "--work-dir", tmp_path / "file")
    assert code == 2
    assert err.startswith("dtjob: --work-dir: ")
