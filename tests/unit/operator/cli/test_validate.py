"""`dtjob validate`: a sentence for each file, and for each thing that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtjob.cli.bad_input import BadInput
from dtjob.cli.validate import verdicts
from tests.unit.operator.cli.manifest import GOOD


def test_every_violation_has_its_line(dtjob, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("replicas: 2", "replicas: 0").replace("everySteps: 100", "everySteps: 0"))
    _, _, err = dtjob("validate", file)
    assert len(err.splitlines()) == 2


def test_validate_looks_at_every_file(dtjob, good, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("- 1")
    assert dtjob("validate", good) == (0, f"{good}: digits is valid\n", "")
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
    assert dtjob("validate", without_image) == (0, f"{without_image}: digits is valid\n", "")


def test_validate_says_of_tfjobs_controller_that_it_is_to_go(dtjob, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("spec:\n", "spec:\n  managedBy: kubeflow.org/training-operator\n", 1))
    code, out, _ = dtjob("validate", file)
    assert code == 0
    assert out.endswith("so dtjob leaves the job alone and says nothing of it: remove managedBy\n")
    file.write_text(GOOD.replace("spec:\n", "spec:\n  managedBy: kueue.x-k8s.io/multikueue\n", 1))
    assert dtjob("validate", file) == (0, f"{file}: digits is valid\n", "")


def test_all_that_is_wrong_is_said_after_the_last_file(good: Path, tmp_path: Path):
    bad, worse = tmp_path / "bad.yaml", tmp_path / "worse.yaml"
    bad.write_text("- 1")
    said = verdicts([bad, good, worse])
    assert next(said) == f"{good}: digits is valid"
    with pytest.raises(BadInput) as wrong:
        next(said)
    assert [line.partition(": ")[0] for line in wrong.value.lines] == [str(bad), str(worse)]


@pytest.mark.parametrize("command", ["validate", "explain", "run"])
def test_metadata_that_no_api_server_takes_is_said_by_every_command(dtjob, tmp_path, command):
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("{name: digits}", "{name: digits, labels: [team]}"))
    code, out, err = dtjob(command, file)
    assert (code, out) == (2, "")
    assert err == f"dtjob: {file}: metadata.labels: must be a mapping (names with values), not a list\n"
