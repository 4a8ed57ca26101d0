# SPDX-License-Identifier: Apache-2.0
"""What becomes of checkpoints when the chief's pod goes."""

from typing import Any

import pytest

from dtjob.api.spec.volume_sources import VOLUME_SOURCES
from dtjob.local.here import DEFAULTS as LOCAL
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.pod.storage import keeping
from tests.unit.operator import builders

DIRECTORY = "/data/checkpoints"


def found(volume: dict[str, Any], **job: Any) -> tuple[bool | None, str]:
    made = keeping(builders.job(checkpoint={"storage": {"volume": volume, "mountPath": DIRECTORY}}, **job), NO_DEFAULTS)
    assert bool(made.message) == (made.kept is not True)
    return made.kept, made.reason


CLAIM = {"persistentVolumeClaim": {"claimName": "a"}}


@pytest.mark.parametrize("source", VOLUME_SOURCES)
def test_the_volume_source_decides_whether_checkpoints_are_kept(source: str):
    odd = {"emptyDir": (False, "EndsWithPod"), "ephemeral": (False, "EndsWithPod"), "hostPath": (None, "OnOneNode")}
    wanted = odd.get(source, (True, "Volume"))
    assert found({source: {}}) == wanted


def test_a_bucket_and_a_directory_of_this_machine_keep_checkpoints():
    assert keeping(builders.job(), NO_DEFAULTS) is None
    bucket = keeping(builders.job(checkpoint={"storage": {"uri": "gs://bucket/a"}}), NO_DEFAULTS)
    local = keeping(builders.job(checkpoint={"storage": {"volume": {"emptyDir": {}}}}), LOCAL)
    assert (bucket.kept, bucket.reason) == (True, "Bucket")
    assert (local.kept, local.reason) == (True, "LocalDirectory")


def test_the_message_says_what_is_lost_and_what_to_write():
    kept = keeping(builders.job(checkpoint={"storage": {"volume": {"emptyDir": {}}}}), NO_DEFAULTS)
    for words in ("checkpoint.storage.volume is an emptyDir volume", "begins again at step 0", "volumeClaimTemplate"):
        assert words in kept.message


@pytest.mark.parametrize("volume", [{"emptyDir": {}}, {"ephemeral": {}}, CLAIM])
def test_the_message_warns_of_an_evaluator_that_would_see_no_checkpoint(volume: dict[str, Any]):
    checkpoint = {"storage": {"volume": volume, "mountPath": DIRECTORY}}
    replicas = {"chief": {}, "worker": {"replicas": 1}}
    for evaluator in (False, True):
        asked = replicas | ({"evaluator": {}} if evaluator else {})
        kept = keeping(builders.job(checkpoint=checkpoint, replicaSpecs=asked), NO_DEFAULTS)
        assert ("the evaluator, in a pod of its own, sees none" in kept.message) is (evaluator and volume is not CLAIM)


def test_a_source_that_is_no_mapping_is_left_to_the_api_server():
    assert found({"persistentVolumeClaim": "claim"}) == (True, "Volume")
