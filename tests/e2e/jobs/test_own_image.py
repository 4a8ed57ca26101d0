# SPDX-License-Identifier: Apache-2.0
"""A job without `program`: the image's own script reads TF_CONFIG, and no supervisor is there to restart in place."""

import re

import pytest

from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.training_job import digits
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Object


def plain(image: str) -> Object:
    """The plain example as a job: its command stands in the template, as it would stand in the image. There is no
    chief: worker 0 has the volume, and writes."""
    manifest = digits(image, "plain")
    spec = manifest["spec"]
    del spec["program"]
    spec["checkpoint"] = {"storage": spec["checkpoint"]["storage"]}
    command = ["python3", "examples/plain.py", "--epochs=8", "--checkpoints=/checkpoints"]
    template = {"spec": {"containers": [{"name": "tensorflow", "command": command}]}}
    spec["replicaSpecs"] = {"worker": {"replicas": 3, "template": template}}
    return manifest


@pytest.mark.slow
def test_a_plain_script_survives_a_workers_death_by_a_restart_of_the_group(
    new_job: NewJob, trainer_image: str, cluster: Cluster
) -> None:
    job = new_job(plain(trainer_image))
    job.wait_up()
    before = job.pods()
    job.wait_log("worker-0", "epoch 3/")  # past the save at step 50
    cluster.kill_container(before["worker-2"], "tensorflow")
    job.wait_replaced(before, *before)
    found = job.wait_phase("Succeeded")
    assert found["status"]["restarts"] == {"total": 1, "causes": {"Signal": 1}}
    assert found["status"]["lastFailure"]["task"] == "worker-2"
    log = job.logs("worker-0")
    assert re.search(r"step [1-9][0-9]+: restored, 3 replicas", log), log
    assert "held-out accuracy 0.9" in log
