# SPDX-License-Identifier: Apache-2.0
"""`dtjob run` with a script in place of a manifest."""

import json
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from dtjob.cli.commands.running import ONLY_IN_A_CLUSTER
from dtjob.cli.main import app
from dtjob.cli.run import lacking_gpus
from dtjob.cli.run_script import job_of, words
from dtjob.manifests.job_file import read_job
from dtjob.manifests.script import Script


@pytest.fixture(autouse=True)
def _script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()


def test_dry_run_prints_a_manifest_of_the_same_job(dtjob, tmp_path):
    options = ("train.py", "--workers", 2, "--dry-run")
    code, as_yaml, _ = dtjob("run", *options, "-o", "yaml", "--", "--epochs", 3)
    assert code == 0
    code, as_json, _ = dtjob("run", *options, "-o", "json", "--", "--epochs", 3)
    assert code == 0
    assert yaml.safe_load(as_yaml) == json.loads(as_json)
    file = tmp_path / "job.yaml"
    file.write_text(as_yaml)
    assert job_of(Script(file))[0] == job_of(Script(Path("train.py"), ("--epochs", "3"), workers=2))[0]


@pytest.mark.parametrize(
    ("options", "often"),
    [
        ([], {"everyEpochs": 1, "everySeconds": 30}),
        (["--checkpoint", "kept"], {"everyEpochs": 1, "everySeconds": 30}),
        (["--checkpoint", "gs://bucket/kept"], {}),
    ],
)
def test_a_script_is_saved_after_each_epoch_on_this_machine(dtjob, options, often):
    made = json.loads(dtjob("run", "train.py", *options, "--dry-run", "-o", "json")[1])
    del made["spec"]["checkpoint"]["storage"]
    assert made["spec"]["checkpoint"] == often


def test_options_of_a_script_are_refused_for_a_manifest(dtjob, good):
    for options in (["--workers", 2], ["--evaluator"], ["--gpus", 1], ["--name", "a"], ["--", "--epochs"]):
        code, _, err = dtjob("run", good, *options)
        assert code == 2
        assert "go with a .py file" in err
    code, _, err = dtjob("run", good, "--dry-run")
    assert (code, "is a manifest; dtjob explain" in err) == (2, True)


def test_words_give_the_same_script_again_without_the_values_of_variables():
    script = Script(
        *(Path("train.py"), ("--epochs", "3"), "ParameterServer", 2, 1, True, "/data", 4, "mine"),
        env=("A=1", "B=x=2"),
        settings=("spec.suspend=false",),
    )
    assert words(script) == [
        *("train.py", "--strategy", "ParameterServer", "--workers", "2", "--ps", "1"),
        *("--gpus", "4", "--name", "mine", "--evaluator"),
        *("-e", "A=…", "-e", "B=…", "--set", "spec.suspend=false"),
        *("--checkpoint", "/data", "--", "--epochs", "3"),
    ]
    assert words(Script(Path("job.yaml"))) == ["job.yaml"]


def test_a_fresh_run_does_not_go_on_from_checkpoints_of_another(dtjob, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "ckpt-5.index").touch()
    code, _, err = dtjob("run", "train.py", "--fresh", "--checkpoint", "kept")
    assert (code, "holds checkpoints" in err) == (2, True)


def test_dry_run_prints_no_manifest_that_would_be_refused(dtjob):
    code, out, err = dtjob("run", "train.py", "--checkpoint", "http://bucket", "--dry-run")
    assert (code, out) == (2, "")
    assert "checkpoint.storage" in err


def test_options_of_a_cluster_are_refused_with_a_sentence_each(dtjob):
    for option, why in ONLY_IN_A_CLUSTER.items():
        code, out, err = dtjob("run", "train.py", option, "a")
        assert (code, out, err) == (2, "", f"dtjob: {option}: goes with dtjob submit; {why}\n")


def test_run_takes_every_option_of_submit_or_says_why_not():
    commands = get_command(app()).commands
    submits, runs = ({part for one in commands[name].params for part in one.opts} for name in ("submit", "run"))
    assert submits - runs == ONLY_IN_A_CLUSTER.keys()


def test_gpus_that_this_machine_lacks_are_refused_before_anything_starts(dtjob, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    code, _, err = dtjob("run", "train.py", "--workers", 2, "--gpus", 1)
    assert (code, err.splitlines()) == (
        2,
        [
            "dtjob: --gpus: the tasks ask for 2 GPUs, and this machine has 1; leave it out, or send the script to a "
            "cluster with dtjob submit"
        ],
    )
    assert not (tmp_path / ".dtjob").exists()


@pytest.mark.parametrize("role", ["chief", "data"])
def test_a_manifest_that_asks_for_more_gpus_than_there_are_runs_with_a_word_about_it(good, monkeypatch, role):
    text = yaml.safe_load(Path(good).read_text())
    text["spec"]["replicaSpecs"][role] = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    Path(good).write_text(yaml.safe_dump(text))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert lacking_gpus(read_job(Path(good))) == "the tasks ask for 2 GPUs, and this machine has none"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert lacking_gpus(read_job(Path(good))) == ""
