# SPDX-License-Identifier: Apache-2.0
"""A manifest's file: everything that can be wrong with it is a sentence and exit code 2."""

from pathlib import Path
from typing import Any

import pytest

from dtjob.bad_input import BadInput
from dtjob.manifests.job_file import LARGEST_BYTES, read_job, read_manifest, with_a_name
from tests.unit.operator.cli.manifest import GOOD

BAD_FILES = {
    "not YAML": ("spec: [", "is not YAML: line 1"),
    "empty": ("", "is empty; give one DistributedTrainingJob"),
    "only a comment": ("# nothing\n", "is empty"),
    "no job among two": ("kind: Pod\n---\nkind: Secret\n", "holds 2 documents, 0 of them a DistributedTrainingJob"),
    "a list": ("- 1\n", "the top must be a mapping"),
    "a word": ("hello", "the top must be a mapping"),
    "another kind": ("apiVersion: v1\nkind: Pod\n", "must be DistributedTrainingJob, not 'Pod'"),
    "a loop": ("&a [*a]", "is not a manifest"),
    "control characters": ("a: \x07", "is not YAML"),
    "a wrong value": (
        GOOD.replace("replicas: 2", "replicas: 0"),
        "spec.replicaSpecs.worker.replicas: must be at least 1",
    ),
    "metadata that no API server takes": (
        GOOD.replace("{name: digits}", "{name: digits, labels: [team]}"),
        "metadata.labels: must be a mapping (names with values), not a list\n",
    ),
    "an unknown field": (GOOD.replace("image:", "picture: x\n  image:"), "spec.picture: is an unknown field"),
    "a broken rule": (GOOD.replace("MultiWorkerMirrored", "Mirrored"), "spec.replicaSpecs"),
}


@pytest.mark.parametrize(("text", "wanted"), BAD_FILES.values(), ids=BAD_FILES.keys())
@pytest.mark.parametrize("command", ["run", "validate", "explain"])
def test_a_bad_file_has_sentences_with_its_name_and_exit_code_2(dtjob, tmp_path, command, text, wanted):
    file = tmp_path / "job.yaml"
    file.write_text(text)
    code, out, err = dtjob(command, file)
    assert (code, out) == (2, "")
    assert wanted in err
    assert all(line.startswith(f"dtjob: {file}: ") for line in err.splitlines())


@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_file_with_two_jobs_is_refused_by_a_command_about_one(dtjob, tmp_path, command):
    file = tmp_path / "job.yaml"
    file.write_text(f"{GOOD}\n---\n{GOOD}")
    code, _, err = dtjob(command, file)
    assert code == 2
    assert "holds 2 documents, 2 of them a DistributedTrainingJob" in err
    assert dtjob("validate", file)[0] == 0


def test_a_file_for_kubectl_may_hold_the_jobs_claim_too(dtjob, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(f"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: digits}}\n---\n{GOOD}")
    assert dtjob("validate", file)[0] == 0


def test_a_file_that_no_api_server_would_take_is_not_read(tmp_path: Path):
    file = tmp_path / "job.yaml"
    file.write_text(GOOD + "#" * LARGEST_BYTES)
    with pytest.raises(BadInput, match="larger than 1536 KiB"):
        read_manifest(file)
    file.write_text((GOOD + "#" * LARGEST_BYTES)[:LARGEST_BYTES])
    assert read_job(file).metadata.name == "digits"


def test_the_single_job_of_several_documents_is_read(tmp_path: Path):
    file = tmp_path / "job.yaml"
    file.write_text(f"---\n{GOOD}\n---\n---\nkind: ConfigMap\n")
    assert read_manifest(file)["metadata"] == {"name": "digits"}


def _file(tmp_path: Any, metadata: str) -> Any:
    file = tmp_path / "job.yaml"
    file.write_text(GOOD.replace("{name: digits}", metadata))
    return file


def test_a_generated_name_is_valid_and_the_accepting_command_is_named(dtjob, tmp_path):
    file = _file(tmp_path, "{generateName: digits-}")
    said = f"{file}: digits-xxxxx is valid; kubectl create takes it, as kubectl apply wants metadata.name\n"
    assert dtjob("validate", file)[:2] == (0, said)


def test_a_name_takes_precedence_over_generate_name(dtjob, tmp_path):
    file = _file(tmp_path, "{generateName: A_, name: digits}")
    assert "metadata.generateName: 'A_' begins no name" in dtjob("validate", file)[2]
    file = _file(tmp_path, "{generateName: other-, name: digits}")
    assert dtjob("validate", file)[:2] == (0, f"{file}: digits is valid\n")


@pytest.mark.parametrize(("begin", "says"), [("A_", "'A_' begins no name"), ("a" * 50, "the name is too long")])
def test_the_error_of_a_bad_generated_name_names_generate_name(dtjob, tmp_path, begin, says):
    file = _file(tmp_path, f"{{generateName: {begin}}}")
    code, out, err = dtjob("validate", file)
    assert (code, out) == (2, "")
    assert err
    assert all(line.startswith(f"dtjob: {file}: metadata.generateName: {says}") for line in err.splitlines())


def test_explain_shows_a_generated_name(dtjob, tmp_path):
    assert dtjob("explain", _file(tmp_path, "{generateName: digits-}"))[1].startswith("digits-xxxxx: ")


@pytest.mark.parametrize("metadata", [None, "x", [], {}, {"generateName": 5}, {"generateName": ""}])
def test_metadata_without_a_usable_generate_name_is_unchanged(metadata: Any) -> None:
    manifest = {"metadata": metadata}
    assert with_a_name(manifest) is manifest
