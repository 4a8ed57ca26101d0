# SPDX-License-Identifier: Apache-2.0
"""`dtjob convert` as its user meets it: streams, lists, standard input, exit codes."""

import io
import json
import sys
from pathlib import Path

import yaml

from dtjob.manifests.manifest_yaml import written
from tests.unit.operator.cli.convert.tfjobs import FOLDER, replica, tfjob

_CLEAN = tfjob({"Worker": replica(replicas=2)})


def test_nothing_lost_is_exit_code_0(dtjob, tmp_path: Path) -> None:
    file = tmp_path / "tfjob.yaml"
    file.write_text(written([_CLEAN]))
    code, out, err = dtjob("convert", file)
    assert code == 0
    assert yaml.safe_load(out)["kind"] == "DistributedTrainingJob"
    assert "warning:" not in err


def test_warnings_are_exit_code_1_and_go_to_standard_error(dtjob) -> None:
    code, out, err = dtjob("convert", FOLDER / "all_workers.yaml")
    assert code == 1
    assert f"warning: {FOLDER / 'all_workers.yaml'}: all-workers: spec.cleanPodPolicy: " in err
    assert "warning" not in out


def test_a_stream_with_one_that_cannot_be_converted_prints_nothing(dtjob, tmp_path: Path) -> None:
    file = tmp_path / "tfjobs.yaml"
    file.write_text(written([_CLEAN, tfjob({"PS": replica()})]))
    code, out, err = dtjob("convert", file)
    assert (code, out) == (2, "")
    assert err == f"dtjob: {file}, document 2: mnist: cannot be converted: spec.tfReplicaSpecs: no task trains; add " \
        "Chief or Worker\n"  # fmt: skip


def test_standard_input_and_folders_are_converted(dtjob, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written([_CLEAN, _CLEAN]).encode())))
    assert dtjob("convert", "-")[1].count("kind: DistributedTrainingJob") == 2
    (tmp_path / "a.yaml").write_text(written([_CLEAN]))
    (tmp_path / "b.json").write_text(json.dumps({"kind": "TFJobList", "items": [_CLEAN, _CLEAN]}))
    (tmp_path / "README.md").write_text("no manifest")
    assert dtjob("convert", tmp_path)[1].count("kind: DistributedTrainingJob") == 3


def test_json_of_several_is_a_list_that_keeps_other_kinds(dtjob) -> None:
    _, out, err = dtjob("convert", FOLDER / "exported.json", "-o", "json")
    whole = json.loads(out)
    assert [item["kind"] for item in whole["items"]] == ["ConfigMap", "DistributedTrainingJob"]
    assert "ConfigMap is no TFJob" in err


def test_a_file_without_a_tfjob_is_exit_code_2(dtjob, good: Path, tmp_path: Path) -> None:
    code, _, err = dtjob("convert", good)
    assert (code, err) == (2, f"dtjob: {good}: has no TFJob of kubeflow.org/v1; give a manifest with one\n")
    assert dtjob("convert", tmp_path)[0] == 2
    assert dtjob("convert", tmp_path / "none.yaml")[0] == 2


def test_templates_that_are_shared_are_written_out(dtjob) -> None:
    assert "&id" not in dtjob("convert", FOLDER / "policies_by_role.yaml")[1]
