"""Mounts: a rule's Python over templates of several containers."""

from __future__ import annotations

from dtjob.crd.problems import problems
from tests.refusals.manifests import job, pod


def test_each_mount_of_each_container_has_to_be_there() -> None:
    def manifest(*names: str) -> dict[str, object]:
        mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
        containers = [{"name": "log", "image": "a"}, {"name": "tensorflow", "volumeMounts": mounts}]
        return job(replicaSpecs=pod(containers=containers, volumes=[{"name": "data", "emptyDir": {}}]))

    assert problems(manifest("data", "dtjob-cluster")) == []
    (found,) = problems(manifest("data", "date"))
    assert found.field == "spec.replicaSpecs.worker.template.spec.volumes"
