# SPDX-License-Identifier: Apache-2.0
"""Elastic workers in real containers: the number changes under `kubectl scale` and with the room on the nodes, and
training goes on at the very step that it had come to."""

import json
import re
from decimal import Decimal

import pytest

from tests.cluster.support.jobs import columns
from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.filler import fill
from tests.e2e.jobs.support.training_job import TrainingJob, attempts
from tests.e2e.jobs.support.until_told import enough, until_told
from tests.e2e.jobs.support.volumes import held_out_accuracy
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object

pytestmark = pytest.mark.slow
GOOD = 0.95
"""What the undistributed run reaches on held-out digits."""
SHARE = Decimal("0.1")
"""Cores that each task asks for."""


def elastic(replicas: int, **everyone: object) -> Object:
    """A chief, and so many workers."""
    task = {"resources": {"requests": {"cpu": str(SHARE)}}, **everyone}
    return {"chief": task, "worker": {"replicas": replicas, **task}}


def wait_workers(job: TrainingJob, count: int) -> Object:
    """Return the job once a group of so many workers is up, and trains."""
    job.wait(f"a group of {count} workers", lambda found: found["status"].get("workers", {}).get("replicas") == count)
    return job.wait_up()


def goes_on(job: TrainingJob, safe: int, workers: int, attempt: int) -> Object:
    """Return the job once a group of so many workers trains, at this attempt and from this step or a later one on."""
    wait_workers(job, workers)
    again = job.wait_restored(safe)
    job.wait_step(again["restoredStep"] + 50)
    tasks = ["chief-0", *(f"worker-{index}" for index in range(workers))]
    assert attempts(job.pods()) == dict.fromkeys(tasks, attempt)
    for task in tasks:
        job.wait_report(f"steps of {task}", lambda report: report.get("step", 0) > again["restoredStep"], task)
    return job.wait_up()


def not_charged(found: Object) -> None:
    status = found["status"]
    assert status["restarts"] == {"total": 0}
    assert "incident" not in status
    assert "lastFailure" not in status


def ends_well(job: TrainingJob, api: Api, cluster: Cluster, image: str, safe: int) -> None:
    """Have it end, and look at what it has learnt."""
    enough(job)
    done = job.wait_phase("Succeeded")
    not_charged(done)
    assert done["status"]["progress"]["step"] >= safe
    assert "resizing" not in done["status"]["workers"]
    assert held_out_accuracy(api, cluster, job.namespace, image) > GOOD


def told(api: Api, namespace: str) -> list[str]:
    """What the events of resizing say, in their order."""
    ours = [one for one in api.list("events", namespace) if one["reason"] in ("Resizing", "Resized")]
    return [
        one["message"] for one in sorted(ours, key=lambda one: (one["firstTimestamp"], one["reason"] != "Resizing"))
    ]


def test_kubectl_scale_changes_the_number_of_workers(
    new_job: NewJob, trainer_image: str, cluster: Cluster, api: Api, namespace: str
) -> None:
    bounds = {"minReplicas": 1, "maxReplicas": 3}
    manifest = until_told(api, namespace, trainer_image, elastic(2), elasticPolicy=bounds)
    job = new_job(manifest)
    wait_workers(job, 2)
    job.wait_checkpoint()
    safe = 0
    for attempt, count in enumerate((1, 3), 1):
        safe = int(job.report()["step"])
        job.kubectl("scale", f"dtjob/{job.name}", f"--replicas={count}")
        found = goes_on(job, safe, count, attempt)
        not_charged(found)
        workers = found["status"]["workers"]
        assert (workers["desired"], workers["reason"]) == (count, "AsDesired")
        assert columns(job.kubectl, "-o", "wide")["WORKERS"] == str(count)
        scale = json.loads(job.kubectl("get", f"dtjob/{job.name}", "--subresource=scale", "-o", "json").stdout)
        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (count, count)
    said = told(api, namespace)
    begins = ["Workers 2 -> 1: spec.replicaSpecs.worker.replicas is 1", "Workers 1 -> 3: there is room for 2 more of 3"]
    assert said[::2] == begins, said
    for count, words in ((1, said[1]), (3, said[3])):
        plural = "s" if count > 1 else ""
        where = r"from the checkpoint at step \d+ or a later one"
        assert re.fullmatch(rf"Training goes on with {count} worker{plural} {where}", words), said
    ends_well(job, api, cluster, trainer_image, safe)


def test_a_group_shrinks_without_room_and_grows_when_there_is_room_again(
    new_job: NewJob, trainer_image: str, cluster: Cluster, api: Api, namespace: str
) -> None:
    node = cluster.nodes[0]
    filler = fill(api, namespace, node, trainer_image, left=SHARE * Decimal("2.5"))
    there = {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}}}
    policy = {"minReplicas": 1, "maxReplicas": 2, "scheduleTimeoutSeconds": 5, "growPeriodSeconds": 5}
    job = new_job(until_told(api, namespace, trainer_image, elastic(2, template=there), elasticPolicy=policy))
    waiting = job.wait(
        "that it waits for room", lambda found: found["status"].get("workers", {}).get("reason") == "Unschedulable"
    )
    assert "it goes on with what there is at" in waiting["status"]["workers"]["message"]
    found = wait_workers(job, 1)
    not_charged(found)
    found = job.wait(
        "what the scheduler says of the placeholder",
        lambda found: "Insufficient cpu" in found["status"]["workers"].get("message", ""),
    )
    assert found["status"]["workers"]["reason"] == "NoRoom"
    assert "digits-worker-1-placeholder waits" in found["status"]["workers"]["message"]
    job.wait_checkpoint()

    safe = int(job.report()["step"])
    job.kubectl("delete", "pod", filler, "--wait=false")
    found = goes_on(job, safe, 2, 2)
    not_charged(found)
    assert found["status"]["workers"]["reason"] == "AsDesired"
    assert [pod for pod in api.list("pods", namespace) if pod["metadata"]["name"].endswith("-placeholder")] == []
    ends_well(job, api, cluster, trainer_image, safe)
