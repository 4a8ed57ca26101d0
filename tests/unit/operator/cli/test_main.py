"""The command line as its user meets it: exit codes, a clear sentence for bad input, what validate and explain say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from dtjob import __version__
from dtjob.cli import main

GOOD = """
apiVersion: training.dtjob.dev/v1alpha1
kind: DistributedTrainingJob
metadata: {name: digits}
spec:
  strategy: MultiWorkerMirrored
  image: dtjob-trainer:dev
  program: {entry: digits.py, args: [--epochs=20]}
  replicas: {chief: {}, worker: {count: 2}, evaluator: {}}
  checkpoint: {directory: /checkpoints, volume: {emptyDir: {}}, everySteps: 100}
"""


@pytest.fixture
def dtjob(monkeypatch, capsys):
    """Runs `dtjob ARGUMENTS…` and gives exit code, standard output and standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dtjob", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


@pytest.fixture
def good(tmp_path: Path) -> Path:
    file = tmp_path / "digits.yaml"
    file.write_text(GOOD)
    return file


def test_version_and_help_need_no_library():
    command = [sys.executable, "-X", "importtime", "-m", "dtjob", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == f"dtjob {__version__}\n"
    for slow in ("kopf", "kubernetes", "pydantic", "aiohttp"):
        assert f" {slow}\n" not in answer.stderr, f"{slow} is imported before it is needed"


def test_help_names_every_command(dtjob):
    code, out, _ = dtjob("--help")
    assert code == 0
    assert all(name in out for name in ("run", "validate", "explain", "operator"))


BAD_FILES = {
    "not YAML": ("spec: [", "is not YAML: line 1"),
    "empty": ("", "is empty; give one DistributedTrainingJob"),
    "only a comment": ("# nothing\n", "is empty"),
    "two documents": (f"{GOOD}\n---\n{GOOD}", "holds 2 documents, 2 of them a DistributedTrainingJob"),
    "no job among two": ("kind: Pod\n---\nkind: Secret\n", "holds 2 documents, 0 of them a DistributedTrainingJob"),
    "a list": ("- 1\n", "the top must be a mapping"),
    "a word": ("hello", "the top must be a mapping"),
    "another kind": ("apiVersion: v1\nkind: Pod\n", "must be DistributedTrainingJob, not 'Pod'"),
    "a date that is none": (GOOD.replace("digits}", "2026-13-45}"), "put values that look like dates into quotes"),
    "a loop": ("&a [*a]", "is not a manifest"),
    "control characters": ("a: \x07", "is not YAML"),
    "a wrong value": (GOOD.replace("count: 2", "count: 0"), "spec.replicas.worker.count: must be at least 1"),
    "an unknown field": (GOOD.replace("image:", "picture: x\n  image:"), "spec.picture: is an unknown field"),
    "a broken rule": (GOOD.replace("MultiWorkerMirrored", "Mirrored"), "spec.replicas"),
}


@pytest.mark.parametrize(("text", "wanted"), BAD_FILES.values(), ids=BAD_FILES.keys())
@pytest.mark.parametrize("command", ["run", "validate", "explain"])
def test_bad_file_is_one_sentence_and_exit_code_2(dtjob, tmp_path, command, text, wanted):
    file = tmp_path / "job.yaml"
    file.write_text(text)
    code, out, err = dtjob(command, file)
    assert (code, out) == (2, "")
    assert wanted in err
    assert all(line.startswith(f"dtjob: {file}: ") for line in err.splitlines())


def test_a_file_for_kubectl_may_hold_the_jobs_claim_too(dtjob, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(f"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: digits}}\n---\n{GOOD}")
    assert dtjob("validate", file)[0] == 0


@pytest.mark.parametrize("command", ["run", "validate", "explain"])
def test_file_that_cannot_be_read(dtjob, tmp_path, command):
    binary = tmp_path / "model.keras"
    binary.write_bytes(b"PK\x03\x04\xff\xfe")
    for file, wanted in (
        (tmp_path / "missing.yaml", "No such file"),
        (tmp_path, "Is a directory"),
        (binary, "is not a text file in UTF-8"),
    ):
        code, out, err = dtjob(command, file)
        assert (code, out) == (2, "")
        assert err.startswith(f"dtjob: {file}: ")
        assert wanted in err


def test_every_violation_has_its_line(dtjob, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("count: 2", "count: 0").replace("everySteps: 100", "everySteps: 0"))
    _, _, err = dtjob("validate", file)
    assert len(err.splitlines()) == 2


def test_unknown_command_and_option_are_exit_code_2(dtjob, good):
    assert dtjob("fly")[0] == 2
    assert dtjob("run", good, "--output=xml")[0] == 2


def test_validate_looks_at_every_file(dtjob, good, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("- 1")
    assert dtjob("validate", good) == (0, f"{good}: digits is valid\n", "")
    code, out, err = dtjob("validate", bad, good)
    assert code == 2
    assert str(good) in out
    assert str(bad) in err


def test_explain_shows_hosts_and_tf_config(dtjob, good):
    code, out, _ = dtjob("explain", good)
    assert code == 0
    assert "digits-worker-1.digits:2222" in out
    assert '"task": {"type": "worker", "index": 1}' in out
    assert "TF_CONFIG  none: it stands alone" in out  # the evaluator


def test_explain_yaml_is_what_would_be_created(dtjob, good):
    _, out, _ = dtjob("explain", good, "-o", "yaml")
    objects = list(yaml.safe_load_all(out))
    assert [item["kind"] for item in objects] == ["Service", "ConfigMap", "NetworkPolicy"] + ["Pod"] * 4
    chief = objects[3]
    assert (chief["spec"]["hostname"], chief["spec"]["subdomain"]) == ("digits-chief-0", "digits")


def test_explain_says_what_is_written_for_tensorboard(dtjob, good):
    assert "TensorBoard" not in dtjob("explain", good)[1]
    good.write_text(f"{good.read_text()}  tensorBoard: {{profile: {{firstStep: 200}}}}\n")
    _, out, _ = dtjob("explain", good)
    assert "/checkpoints/events/train, for TensorBoard, every 100 steps" in out
    assert "steps 200 to 204 of chief-0" in out


def test_explain_json_has_each_task(dtjob, good):
    _, out, _ = dtjob("explain", good, "-o", "json")
    tasks = {task["task"]: task for task in json.loads(out)["tasks"]}
    assert list(tasks) == ["chief-0", "worker-0", "worker-1", "evaluator-0"]
    assert tasks["worker-1"]["tfConfig"]["task"] == {"type": "worker", "index": 1}
    assert tasks["evaluator-0"]["tfConfig"] is None


@pytest.fixture
def without_image(tmp_path: Path) -> Path:
    file = tmp_path / "no-image.yaml"
    file.write_text(GOOD.replace("  image: dtjob-trainer:dev\n", ""))
    return file


def test_validate_says_that_the_operator_must_have_an_image(dtjob, without_image):
    code, out, _ = dtjob("validate", without_image)
    assert code == 0
    assert "is valid; it leaves out spec.image" in out


def test_explain_shows_a_job_with_the_operators_defaults(dtjob, without_image, good):
    assert "Image: left out" in dtjob("explain", without_image)[1]
    assert "Image: dtjob-trainer:dev" in dtjob("explain", good, "--default-image=other:1")[1]
    options = ("--default-image=other:1", "--default-pod-label=team=vision")
    assert "Image: other:1" in dtjob("explain", without_image, *options)[1]
    _, out, _ = dtjob("explain", without_image, "-o", "yaml", *options)
    pods = [one for one in yaml.safe_load_all(out) if one["kind"] == "Pod"]
    assert {one["spec"]["containers"][0]["image"] for one in pods} == {"other:1"}
    assert {one["metadata"]["labels"]["team"] for one in pods} == {"vision"}
    chief = json.loads(dtjob("explain", without_image, "-o", "json")[1])["objects"][3]
    assert "image" not in chief["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--default-image=", "--default-image: '' is no image"),
        ("--default-image=a b", "--default-image: 'a b' is no image"),
        ("--default-pod-label=team", "--default-pod-label: 'team' is not KEY=VALUE"),
        ("--default-pod-label=training.dtjob.dev/role=ps", "training.dtjob.dev/role belongs to dtjob"),
        ("--metrics=8081", "--metrics: '8081' is not host:port"),
        ("--liveness=8080", "--liveness: '8080' is not host:port"),
    ],
)
def test_operator_refuses_wrong_options_at_its_start(dtjob, option, said):
    code, _, err = dtjob("operator", option)
    assert code == 2
    assert said in err


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


def test_operator_without_a_cluster(dtjob, tmp_path):
    code, _, err = dtjob("operator", "--kubeconfig", tmp_path / "none")
    assert code == 2
    assert "--kubeconfig" in err
