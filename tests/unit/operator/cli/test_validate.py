# SPDX-License-Identifier: Apache-2.0
"""`dtjob validate`: a sentence for each file, and for each thing that is wrong."""

import io
import json
import sys
from pathlib import Path

import pytest

from dtjob.bad_input import BadInput
from dtjob.cli.validate import verdicts
from dtjob.manifests.manifest_yaml import documents, written
from tests.unit.operator.cli.manifest import GOOD


def test_every_violation_has_its_line(dtjob, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("replicas: 2", "replicas: 0").replace("everySteps: 100", "everySteps: 0"))
    _, _, err = dtjob("validate", file)
    assert len(err.splitlines()) == 2


def test_validate_looks_at_every_file(dtjob, good, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("- 1")
    assert dtjob("validate", good)[:2] == (0, f"{good}: digits is valid\n")
    code, out, err = dtjob("validate", bad, good)
    assert code == 2
    assert str(good) in out
    assert str(bad) in err


def test_validate_says_that_the_operator_must_have_an_image(dtjob, without_image):
    code, out, _ = dtjob("validate", without_image)
    assert code == 0
    assert "is valid; it leaves out spec.image" in out


def test_validate_wants_no_other_image_if_every_template_names_one(dtjob, without_image):
    own = "template: {spec: {containers: [{name: tensorflow, image: own:1}]}}"
    roles = f"chief: {{{own}}}, worker: {{replicas: 2, {own}}}, evaluator: {{{own}}}"
    text = without_image.read_text()
    without_image.write_text(text.replace("chief: {}, worker: {replicas: 2}, evaluator: {}", roles))
    assert dtjob("validate", without_image)[:2] == (0, f"{without_image}: digits is valid\n")


def test_validate_says_of_tfjobs_controller_that_it_is_to_go(dtjob, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("spec:\n", "spec:\n  managedBy: kubeflow.org/training-operator\n", 1))
    code, out, _ = dtjob("validate", file)
    assert code == 0
    assert out.endswith("so dtjob leaves the job alone and says nothing of it: remove managedBy\n")
    file.write_text(GOOD.replace("spec:\n", "spec:\n  managedBy: kueue.x-k8s.io/multikueue\n", 1))
    assert dtjob("validate", file)[:2] == (0, f"{file}: digits is valid\n")


def test_all_that_is_wrong_is_said_after_the_last_file(good: Path, tmp_path: Path):
    bad, worse = tmp_path / "bad.yaml", tmp_path / "worse.yaml"
    bad.write_text("- 1")
    said = verdicts([bad, good, worse])
    assert next(said).line == f"{good}: digits is valid"
    with pytest.raises(BadInput) as wrong:
        next(said)
    assert [line.partition(": ")[0] for line in wrong.value.lines] == [str(bad), str(worse)]


def test_warnings_say_what_a_job_may_not_be_meant_to_do(dtjob, good: Path) -> None:
    err = dtjob("validate", good)[2]
    assert err.startswith(f"warning: {good}: checkpoint.storage.volume is an emptyDir volume")


def test_streams_lists_folders_and_standard_input(dtjob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = documents(GOOD)
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"}}
    stream = written([claim, one, {"kind": "List", "items": [one]}])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stream.encode())))
    assert dtjob("validate", "-")[1] == (
        "standard input, document 2: digits is valid\nstandard input, document 3: digits is valid\n"
    )
    (tmp_path / "a.yaml").write_text(stream)
    (tmp_path / "b.yml").write_text(GOOD.replace("MultiWorkerMirrored", "Fast"))
    code, out, err = dtjob("validate", tmp_path)
    assert (code, out.count("is valid")) == (2, 2)
    assert f"dtjob: {tmp_path / 'b.yml'}: spec.strategy: must be one of" in err
    (tmp_path / "c.yaml").write_text(written([claim, claim]))
    assert "holds 2 documents, 0 of them" in dtjob("validate", tmp_path / "c.yaml")[2]


def test_json_has_every_verdict(dtjob, good: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(GOOD.replace("MultiWorkerMirrored", "Fast"))
    code, out, _ = dtjob("validate", good, bad, tmp_path / "none.yaml", "-o", "json")
    right, wrong, missing = json.loads(out)
    assert code == 2
    assert (right["valid"], right["name"], len(right["warnings"])) == (True, "digits", 1)
    assert (wrong["valid"], wrong["problems"][0]["field"]) == (False, "spec.strategy")
    assert "cannot be read" in missing["problems"][0]["message"]


def test_a_program_without_a_checkpoint_is_warned_of(dtjob, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    spec = "spec: {strategy: Default, image: a, program: {entrypoint: train.py%s}, replicaSpecs: {chief: {}}}"
    text = "apiVersion: training.dtjob.dev/v1beta1\nkind: DistributedTrainingJob\nmetadata: {name: digits}\n" + spec
    file.write_text(text % "")
    code, _, err = dtjob("validate", file)
    said = f"warning: {file}: no checkpoint: every restart begins at step 0; add checkpoint.storage\n"
    assert (code, err) == (0, said)
    file.write_text(text % ", integration: None")  # the program saves by itself
    assert dtjob("validate", file)[2] == ""


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ("replicaSpecs: {worker: {replicas: 2}, chief: }", "replicaSpecs.chief"),
        ("replicaSpecs: {worker: {replicas: 2}, evaluator: }", "replicaSpecs.evaluator"),
        ("replicaSpecs: {worker: {replicas: 2}}, tensorBoard: ", "tensorBoard"),
        ("replicaSpecs: {worker: {replicas: 2}}, scheduling: {gang: }", "scheduling.gang"),
    ],
)
def test_an_empty_block_that_would_mean_something_is_warned_of(dtjob, tmp_path: Path, block: str, field: str) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(
        "apiVersion: training.dtjob.dev/v1beta1\nkind: DistributedTrainingJob\nmetadata: {name: digits}\n"
        f"spec: {{strategy: MultiWorkerMirrored, image: a, {block}}}"
    )
    name = field.rpartition(".")[2]
    code, _, err = dtjob("validate", file)
    told = f"warning: {file}: spec.{field} is empty and counts as absent; write `{name}: {{}}`, or remove {name}\n"
    assert (code, err) == (0, told)
