# SPDX-License-Identifier: Apache-2.0
"""The job of a script, as the options say."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.bad_input import BadInput
from dtjob.manifests.script import Script, Submission
from dtjob.manifests.submitted import made


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "Train_MNIST.py"
    file.write_text("print(1)\n")
    return file


def spec(script: Path, *, of_script: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = made(Submission(Script(script, **(of_script or {})), **options)).job["spec"]
    return found


def test_the_job_names_its_files(script: Path) -> None:
    one = made(Submission(Script(script, ("--epochs=3",)), namespace="team"))
    assert one.name == "train-mnist"
    metadata = one.config_map["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("train-mnist-source", "team")
    assert one.job["metadata"] == {"name": "train-mnist", "namespace": "team"}
    assert one.job["spec"]["program"] == {
        "source": {"configMap": {"name": "train-mnist-source"}},
        "entrypoint": "Train_MNIST.py",
        "args": ["--epochs=3"],
    }
    assert one.warnings


def test_a_claim_or_a_uri_becomes_the_storage_of_checkpoints(script: Path) -> None:
    claim = {"volume": {"persistentVolumeClaim": {"claimName": "data"}}}
    assert spec(script, claim="data")["checkpoint"]["storage"] == claim
    assert spec(script, of_script={"checkpoint": "gs://b/c"})["checkpoint"]["storage"] == {"uri": "gs://b/c"}
    assert made(Submission(Script(script), claim="data")).warnings == []


def test_a_setting_without_effect_is_warned_of(script: Path) -> None:
    rule = "{action: FailJob, onExitCodes: {operator: In, values: [0, 1]}}"
    settings = (f"spec.failurePolicy.rules=[{rule}]",)
    (said,) = made(Submission(Script(script, settings=settings), claim="data")).warnings
    assert "exit code 0 is success" in said


def test_a_size_becomes_a_claim_that_the_operator_creates(script: Path) -> None:
    template = spec(script, claim_size="10Gi")["checkpoint"]["storage"]["volumeClaimTemplate"]
    assert template == {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}}
    assert made(Submission(Script(script), claim_size="10Gi")).warnings == []


def test_a_job_writes_for_tensorboard_where_its_storage_lasts(script: Path) -> None:
    assert spec(script, claim="data")["tensorBoard"] == {}
    assert spec(script, of_script={"checkpoint": "gs://b/c"})["tensorBoard"] == {}
    assert "tensorBoard" not in spec(script)


def test_queue_image_and_name(script: Path) -> None:
    one = made(Submission(Script(script, name="mine"), image="registry.example/a:1", queue="team"))
    assert one.job["metadata"] == {"name": "mine", "labels": {"kueue.x-k8s.io/queue-name": "team"}}
    assert one.job["spec"]["image"] == "registry.example/a:1"


@pytest.mark.parametrize(
    ("options", "of_script", "said"),
    [
        ({}, {"checkpoint": "here"}, "--checkpoint: here is no URI"),
        ({"claim": "a"}, {"checkpoint": "gs://a/b"}, "give only one of --claim and --checkpoint"),
        ({"claim": "a", "claim_size": "1Gi"}, {}, "give only one of --claim-size and --claim"),
        ({"claim_size": "10 GB"}, {}, "--claim-size: '10 GB' is no size; write for example 10Gi"),
        ({}, {"evaluator": True}, "--evaluator: it reads the checkpoints"),
        ({"claim": ""}, {}, "--claim: '' is no name"),
        ({"claim": "a b"}, {}, "--claim: 'a b' is no name"),
        ({"queue": " "}, {}, "--queue: ' ' is no name"),
        ({"image": ""}, {}, "--image: '' is no name"),
        ({}, {"name": "A_b"}, "must be a DNS label"),
        ({}, {"strategy": "Fast"}, "--strategy: Fast is none of"),
    ],
)
def test_options_that_do_not_fit_are_named(
    script: Path, options: dict[str, Any], of_script: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        spec(script, of_script=of_script, **options)


def test_the_dry_run_prints_what_kubectl_applies(dtjob, script: Path) -> None:
    code, out, err = dtjob("submit", script, "--workers", 2, "--dry-run")
    assert code == 0
    assert [one["kind"] for one in yaml.safe_load_all(out)] == ["ConfigMap", "DistributedTrainingJob"]
    assert err.startswith("warning: checkpoints end with the pod")


def test_options_of_a_script_beside_a_manifest_are_refused(dtjob, good: Path) -> None:
    code, _, err = dtjob("submit", good, "--workers", 2)
    assert (code, err) == (
        2,
        f"dtjob: {good}: options of a script go with a .py file; write them in the manifest instead\n",
    )
