# SPDX-License-Identifier: Apache-2.0
"""The volume of the checkpoints: a rule's Python over any source."""

from itertools import combinations

import pytest

from dtjob.api.spec.volume_sources import MAY_BE_READ_ONLY, READ_ONLY_SOURCES, VOLUME_SOURCES
from dtjob.crd.answers.problems import problems
from tests.refusals.manifests import job, pod, storage


@pytest.mark.parametrize("source", [one for one in VOLUME_SOURCES if one not in READ_ONLY_SOURCES])
def test_each_volume_source_is_taken_alone(source: str) -> None:
    assert problems(storage(volume={source: {}})) == []


def test_a_volume_with_two_sources_or_none_is_refused() -> None:
    for sources in ((), *combinations(("emptyDir", "nfs", "persistentVolumeClaim"), 2)):
        (found,) = problems(storage(volume={source: {} for source in sources}))
        assert (found.field, "exactly one volume source" in found.message) == ("spec.checkpoint.storage.volume", True)


@pytest.mark.parametrize("source", MAY_BE_READ_ONLY)
def test_a_volume_that_could_be_read_only_and_is_not_is_taken(source: str) -> None:
    assert problems(storage(volume={source: {"readOnly": False}})) == []
    (found,) = problems(storage(volume={source: {"readOnly": True}}))
    assert (found.field, "remove readOnly" in found.message) == ("spec.checkpoint.storage.volume", True)


def test_every_source_is_read_only_always_or_by_a_field_or_never() -> None:
    assert set(READ_ONLY_SOURCES) | set(MAY_BE_READ_ONLY) < set(VOLUME_SOURCES)
    assert not set(READ_ONLY_SOURCES) & set(MAY_BE_READ_ONLY)


def test_each_mount_of_each_container_has_to_be_there() -> None:
    def manifest(*names: str) -> dict[str, object]:
        mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
        containers = [{"name": "log", "image": "a"}, {"name": "tensorflow", "volumeMounts": mounts}]
        return job(replicaSpecs=pod(containers=containers, volumes=[{"name": "data", "emptyDir": {}}]))

    assert problems(manifest("data", "dtjob-cluster")) == []
    (found,) = problems(manifest("data", "date"))
    assert found.field == "spec.replicaSpecs.worker.template.spec.volumes"
