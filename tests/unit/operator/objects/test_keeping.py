"""What becomes of checkpoints when the chief's pod goes."""

from __future__ import annotations

from typing import Any

import pytest

from dtjob.api.volume_sources import READ_ONLY_SOURCES, VOLUME_SOURCES
from dtjob.local.here import DEFAULTS as LOCAL
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.keeping import keeping
from tests.unit.operator import builders

DIRECTORY = "/data/checkpoints"


def found(volume: dict[str, Any] | None = None, directory: str = DIRECTORY, **job: Any) -> tuple[bool | None, str]:
    made = keeping(builders.job(checkpoint={"storage": {"volume": volume, "mountPath": directory}}, **job), NO_DEFAULTS)
    assert made is not None
    assert bool(made.message) == (made.kept is not True)
    return made.kept, made.reason


def mounted(volume: dict[str, Any], path: str = "/data", container: str = "tensorflow", **mount: Any) -> dict[str, Any]:
    """Replicas whose chief mounts this volume of the template's own."""
    containers = [{"name": container, "volumeMounts": [{"name": "data", "mountPath": path, **mount}]}]
    spec = {"containers": containers, "volumes": [{"name": "data", **volume}]}
    return {"chief": {"template": {"spec": spec}}, "worker": {"replicas": 1}}


CLAIM = {"persistentVolumeClaim": {"claimName": "a"}}


@pytest.mark.parametrize("source", VOLUME_SOURCES)
def test_each_volume_source(source: str):
    odd = {
        "emptyDir": (False, "EndsWithPod"),
        "ephemeral": (False, "EndsWithPod"),
        "hostPath": (None, "OnOneNode"),
        **dict.fromkeys(READ_ONLY_SOURCES, (False, "ReadOnly")),
    }
    wanted = odd.get(source, (True, "Volume"))
    assert found({source: {}}) == wanted
    assert found(replicaSpecs=mounted({source: {}})) == wanted


def test_no_checkpoints_no_bucket_and_no_cluster():
    assert keeping(builders.job(), NO_DEFAULTS) is None
    assert found(directory="gs://bucket/a") == (True, "Bucket")
    local = keeping(builders.job(checkpoint={"directory": DIRECTORY}), LOCAL)
    assert local is not None
    assert local.kept


def test_a_directory_in_no_volume_ends_with_the_pod():
    assert found() == (False, "EndsWithPod")
    kept = keeping(builders.job(checkpoint={"directory": DIRECTORY}), NO_DEFAULTS)
    assert kept is not None
    assert kept.message == (
        "checkpoint.directory /data/checkpoints is in no volume, and ends with the chief's pod: when that is lost, "
        "training begins again at step 0; use checkpoint.volume with a persistentVolumeClaim"
    )


@pytest.mark.parametrize("volume", [None, {"emptyDir": {}}, {"ephemeral": {}}, CLAIM])
def test_an_evaluator_that_would_see_no_checkpoint_is_told_of(volume: dict[str, Any] | None):
    checkpoint = {"storage": {"volume": volume, "mountPath": DIRECTORY}}
    replicas = {"chief": {}, "worker": {"replicas": 1}}
    for evaluator in (False, True):
        asked = replicas | ({"evaluator": {}} if evaluator else {})
        kept = keeping(builders.job(checkpoint=checkpoint, replicas=asked), NO_DEFAULTS)
        assert kept is not None
        assert ("the evaluator, in a pod of its own, sees none" in kept.message) is (evaluator and volume is not CLAIM)


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/data", True),
        ("/data/", True),
        (DIRECTORY, True),
        ("/", True),
        ("/dat", False),
        ("/data/checkpoints/a", False),
    ],
)
def test_a_volume_of_the_template_keeps_what_is_below_its_mount(path: str, kept: bool):
    assert found(replicaSpecs=mounted(CLAIM, path))[0] is kept


def test_only_the_training_container_of_the_chief_task_counts():
    assert found(replicaSpecs=mounted(CLAIM, container="log")) == (False, "EndsWithPod")
    chief = mounted(CLAIM)["chief"]
    assert found(replicaSpecs={"chief": {}, "worker": chief}) == (False, "EndsWithPod")
    assert found(replicaSpecs={"worker": chief}) == (True, "Volume")


def test_the_innermost_mount_decides():
    replicas = mounted(CLAIM)
    spec = replicas["chief"]["template"]["spec"]
    spec["containers"][0]["volumeMounts"].append({"name": "scratch", "mountPath": DIRECTORY})
    spec["volumes"].append({"name": "scratch", "emptyDir": {}})
    assert found(replicaSpecs=replicas) == (False, "EndsWithPod")


def test_what_is_mounted_read_only_cannot_be_written():
    assert found(replicaSpecs=mounted(CLAIM, readOnly=True)) == (False, "ReadOnly")
    assert found({"nfs": {"server": "a", "path": "/", "readOnly": True}}) == (False, "ReadOnly")


def test_a_source_that_is_no_mapping_is_left_to_the_api_server():
    assert found(directory="/data/a", replicaSpecs=mounted({"persistentVolumeClaim": "claim"})) == (True, "Volume")
