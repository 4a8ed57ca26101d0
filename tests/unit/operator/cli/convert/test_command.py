# SPDX-License-Identifier: Apache-2.0
"""`dtjob convert` as its user meets it: streams, lists, standard input, exit codes."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.manifests.manifest_yaml import written
from tests.unit.operator.cli.convert.tfjobs import FOLDER, replica, tfjob

DOCS = Path(__file__).parents[5] / "docs"
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


@pytest.mark.parametrize(
    ("version", "said"),
    [
        *((f"v1{name}", "move cleanPodPolicy, ttlSecondsAfterFinished") for name in ("beta2", "beta1", "alpha2")),
        ("v1alpha1", "each entry of the list spec.replicaSpecs in the mapping spec.tfReplicaSpecs"),
        ("v2", "apiVersion: must be kubeflow.org/v1, not 'kubeflow.org/v2'"),
    ],
)
def test_a_tfjob_of_another_version_is_told_what_to_change(dtjob: Any, tmp_path: Path, version: str, said: str) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(written([{**tfjob({"Worker": replica()}), "apiVersion": f"kubeflow.org/{version}"}]))
    code, out, err = dtjob("convert", file)
    assert (code, out) == (2, "")
    assert err.startswith(f"dtjob: {file}: mnist: cannot be converted: apiVersion: ")
    assert said in err


@pytest.mark.parametrize(
    ("kind", "page"),
    [
        *((kind, "migrate/trainjob-jobset-job.md") for kind in ("JobSet", "TrainJob", "Job")),
        ("RayJob", "overview/comparison.md"),
    ],
)
def test_a_job_of_another_kind_is_told_which_page_is_about_it(dtjob: Any, tmp_path: Path, kind: str, page: str) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(f"kind: {kind}\n")
    code, _, err = dtjob("convert", file)
    assert code == 2
    text = (DOCS / page).read_text()
    title = text.splitlines()[0].removeprefix("# ")
    assert err.startswith(f"dtjob: {file}: {kind} cannot be converted; the page '{title}' of the guides ")
    assert kind in text
    file.write_text(f"kind: {kind}\n---\n{written([tfjob({'Worker': replica(replicas=2)})])}")
    assert f"note: {file}, document 1: {kind} cannot be converted; the page '{title}' " in dtjob("convert", file)[2]


def test_templates_are_told_how_they_become_manifests(dtjob: Any, tmp_path: Path) -> None:
    file = tmp_path / "template.yaml"
    file.write_text("kind: Template\nobjects: [{kind: TFJob}]\n")
    said = f"dtjob: {file}: Template is filled in first: oc process -f FILE --local -o yaml | dtjob convert -\n"
    assert dtjob("convert", file) == (2, "", said)
    helm = f"dtjob: {file}: is a template of helm; render it first: helm template CHART > FILE\n"
    for text in ("replicas: {{ .Values.replicas }}\n", "{{- if .Values.x }}\nkind: TFJob\n{{- end }}\n"):
        file.write_text(text)
        assert dtjob("convert", file) == (2, "", helm)
        assert dtjob("validate", file) == (2, "", helm)
    file.write_text(written([tfjob({"Worker": {**replica(), "replicas": "{{ .Values.replicas }}"}})]))
    assert "a template of helm is rendered first: helm template CHART > FILE" in dtjob("convert", file)[2]


def test_a_role_with_nothing_below_it_is_not_lost_silently(dtjob: Any, tmp_path: Path) -> None:
    file = tmp_path / "tfjob.yaml"
    file.write_text(written([tfjob({"Worker": replica(replicas=2), "Chief": None})]))
    code, _, err = dtjob("convert", file)
    assert code == 1
    assert (
        f"warning: {file}: mnist: spec.tfReplicaSpecs.Chief: is empty, so the TFJob has no such task; if it was meant, "
        "write `chief: {}` in the result" in err
    )
