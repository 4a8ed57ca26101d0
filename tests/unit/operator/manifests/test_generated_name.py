# SPDX-License-Identifier: Apache-2.0
"""A file that leaves its job's name to the API server (tests/cluster/test_generated_name.py asks one)."""

from typing import Any

import pytest

from dtjob.manifests.generated_name import with_a_name
from tests.unit.operator.cli.manifest import GOOD


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
