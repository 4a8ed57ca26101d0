# SPDX-License-Identifier: Apache-2.0
"""`dtjob run` with a script in place of a manifest."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from dtjob.cli.run_script import job_of, words
from dtjob.cli.script import Script


def test_dry_run_prints_a_manifest_of_the_same_job(dtjob, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    options = ("train.py", "--workers", 2, "--dry-run")
    code, as_yaml, _ = dtjob("run", *options, "-o", "yaml", "--", "--epochs", 3)
    assert code == 0
    code, as_json, _ = dtjob("run", *options, "-o", "json", "--", "--epochs", 3)
    assert code == 0
    assert yaml.safe_load(as_yaml) == json.loads(as_json)
    file = tmp_path / "job.yaml"
    file.write_text(as_yaml)
    assert job_of(Script(file)) == job_of(Script(Path("train.py"), ("--epochs", "3"), workers=2))


def test_options_of_a_script_are_refused_for_a_manifest(dtjob, good):
    for options in (["--workers", 2], ["--evaluator"], ["--", "--epochs"]):
        code, _, err = dtjob("run", good, *options)
        assert code == 2
        assert "go with a .py file" in err
    code, _, err = dtjob("run", good, "--dry-run")
    assert (code, "is a manifest; dtjob explain" in err) == (2, True)


def test_a_script_that_is_not_there_is_named(dtjob, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = dtjob("run", "train.py", "--dry-run")
    assert (code, err) == (2, "dtjob: train.py: is no file; give a Python script or a manifest\n")


def test_words_give_the_same_script_again():
    script = Script(Path("train.py"), ("--epochs", "3"), "ParameterServer", 2, 1, True, "/data")
    assert words(script) == [
        *("train.py", "--strategy", "ParameterServer", "--workers", "2", "--ps", "1", "--evaluator"),
        *("--checkpoint", "/data", "--", "--epochs", "3"),
    ]
    assert words(Script(Path("job.yaml"))) == ["job.yaml"]


def test_a_fresh_run_does_not_go_on_from_checkpoints_of_another(dtjob, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "ckpt-5.index").touch()
    code, _, err = dtjob("run", "train.py", "--fresh", "--checkpoint", "kept")
    assert (code, "holds checkpoints" in err) == (2, True)


def test_dry_run_prints_no_manifest_that_would_be_refused(dtjob, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    code, out, err = dtjob("run", "train.py", "--checkpoint", "http://bucket", "--dry-run")
    assert (code, out) == (2, "")
    assert "checkpoint.storage" in err
