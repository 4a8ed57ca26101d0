# SPDX-License-Identifier: Apache-2.0
"""The real Kueue takes the quota of a job that trains in real containers, and gives it back."""

import pytest

from dtjob.objects import labels
from tests.cluster.test_kueue import has
from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.training_job import attempts, digits
from tests.e2e.jobs.support.until_told import enough, until_told
from tests.e2e.jobs.support.volumes import held_out_accuracy
from tests.integrations.kueue.test_kueue import PRIORITY, workload
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object

pytestmark = pytest.mark.timeout(900)
QUEUE_NAME = "kueue.x-k8s.io/queue-name"
THIRD = {"resources": {"requests": {"cpu": "100m", "memory": "256Mi"}}}
"""Of the quota: three tasks use all of it."""
ROLES: Object = {"chief": THIRD, "worker": {"replicas": 2, **THIRD}}


def queued(manifest: Object, queue: str, priority: str | None = None) -> Object:
    """The job in a queue."""
    asked = {QUEUE_NAME: queue, **({PRIORITY: priority} if priority else {})}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": asked}}


def only_urgent(pods: dict[str, Object]) -> bool:
    """Whether all of the urgent job's pods are there. While one of the other job's has not ended, that would be more
    than the quota; one that has ended may be seen for a while."""
    there = {name: pod for name, pod in pods.items() if pod["status"].get("phase") not in ("Succeeded", "Failed")}
    both = {labels.of(pod).get(labels.JOB_NAME) for pod in there.values()} & {"low", "urgent"}
    assert len(both) < 2, sorted(there)
    return [labels.of(pod).get(labels.JOB_NAME) for pod in pods.values()].count("urgent") == 3


def test_a_job_that_trains_saves_makes_room_and_goes_on(
    queue: str, new_job: NewJob, trainer_image: str, cluster: Cluster, api: Api, namespace: str
) -> None:
    low = new_job(queued(until_told(api, namespace, trainer_image, ROLES, "low"), queue))
    low.wait_up()
    low.wait_checkpoint()
    before = low.pods()
    safe = int(low.report()["step"])

    urgent = new_job(queued(digits(trainer_image, "urgent", epochs=5, replicaSpecs=ROLES), queue, "high"))
    api.wait("pods", namespace, only_urgent, 240)
    evicted = low.wait_phase("Suspended")["status"]
    assert evicted["reason"] == "Queued"
    assert evicted["message"].startswith(f"queued in {queue}, position unknown; needs 300m cpu, 768Mi memory")
    assert evicted["ready"] == "0/3"
    done = urgent.wait_phase("Succeeded")
    assert done["status"]["restarts"] == {"total": 0}

    low.wait_up()
    again = low.wait_restored(safe)
    low.wait_step(again["restoredStep"] + 50)
    assert attempts(low.pods()) == {task: attempt + 1 for task, attempt in attempts(before).items()}
    workload(api, namespace, "low", has("PodsReady", "True"))
    enough(low)
    found = low.wait_phase("Succeeded")["status"]
    assert found["restarts"] == {"total": 0}
    assert "incident" not in found
    assert "lastFailure" not in found
    assert found["progress"]["step"] > again["restoredStep"]
    for name in ("low", "urgent"):
        workload(api, namespace, name, has("Finished", "True", "Succeeded"))
    assert held_out_accuracy(api, cluster, namespace, trainer_image, "low") > 0.95
