"""Checkpoint volumes: the chief's alone, as in the other tests, or one that every task mounts."""

from __future__ import annotations

from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.training_job import digits
from tests.e2e.jobs.support.volumes import mounts_claim


def test_a_shared_volume_is_mounted_by_every_task(new_job: NewJob, trainer_image: str) -> None:
    manifest = digits(trainer_image, epochs=5, replicas={"worker": {"count": 2}})
    manifest["spec"]["checkpoint"]["mount"] = "All"
    job = new_job(manifest, shared=True)
    job.wait_up()
    assert all(mounts_claim(pod, "digits") for pod in job.pods().values())
    found = job.wait_phase("Succeeded")
    assert found["status"]["progress"]["step"] == 115
