# SPDX-License-Identifier: Apache-2.0
"""Data workers in real containers on two nodes: one is lost, their number changes, and training goes on."""

import pytest

from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.training_job import TrainingJob, attempts, ids, running
from tests.e2e.jobs.support.until_told import enough, until_told
from tests.e2e.jobs.test_lost_node import on
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def served(job: TrainingJob, count: int) -> None:
    """Return once so many data workers run, and no other one is left."""
    wanted = {f"data-{index}" for index in range(count)}
    job.wait_pods(
        f"{count} data workers",
        lambda pods: (
            {task for task in pods if task.startswith("data-")} == wanted
            and all(running(pods[task]) for task in wanted)
        ),
    )
    job.wait("their number", lambda found: found["status"]["replicaStatuses"]["data"].get("active") == count)


def trains_on(job: TrainingJob, epochs: int) -> None:
    """Return once so many more epochs have begun."""
    begun = job.report()["epoch"]
    job.wait_report(f"epoch {begun + epochs}", lambda report: report.get("epoch", 0) >= begun + epochs)


def test_training_goes_on_while_data_workers_are_lost_and_their_number_changes(
    new_job: NewJob, trainer_image: str, cluster: Cluster, api: Api, namespace: str
) -> None:
    here, there = cluster.nodes[0], cluster.nodes[-1]
    cpu = {"resources": {"requests": {"cpu": "100m"}}}
    roles = {
        "chief": {"template": on(here, strictly=True), **cpu},
        "data": {"replicas": 2, "template": on(there, strictly=True), **cpu},
    }
    manifest = until_told(api, namespace, trainer_image, roles, example="images.py", strategy="Default")
    manifest["spec"]["program"]["args"] = ["--epochs=100000"]
    job = new_job(manifest)
    job.wait_up()
    job.wait_log("chief-0", "the job's data workers make the examples")
    served(job, 2)
    trains_on(job, 1)
    before = job.pods()
    assert {task: pod["spec"]["nodeName"] for task, pod in before.items()} == {
        "chief-0": here,
        "data-0": there,
        "data-1": there,
    }

    job.kubectl("delete", "pod", before["data-1"]["metadata"]["name"], "--wait=false")
    job.wait_replaced(before, "data-1")
    trains_on(job, 2)
    for count in (3, 1):
        patch = f'{{"spec":{{"replicaSpecs":{{"data":{{"replicas":{count}}}}}}}}}'
        job.kubectl("patch", f"dtjob/{job.name}", "--type=merge", "-p", patch)
        served(job, count)
        trains_on(job, 2)

    after = job.pods()
    assert attempts(after) == {"chief-0": 0, "data-0": 0}
    assert ids(after) == {task: ids(before)[task] for task in after}, "neither pod nor container was replaced"
    assert "restartsInPlace" not in (report := job.report()) or report["restartsInPlace"] == 0
    enough(job)
    done = job.wait_phase("Succeeded")
    assert done["status"]["restarts"] == {"total": 0}
    assert done["status"]["progress"]["resume"] == "approximate"
    job.wait_pods("the end of data workers, which never end by themselves", lambda pods: set(pods) == {"chief-0"})
