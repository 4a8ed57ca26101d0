# SPDX-License-Identifier: Apache-2.0
"""A training that is suspended gives its nodes back, and goes on at the very step that it saved when it was told to."""

import json

from tests.e2e.jobs.support.training_job import TrainingJob, attempts, causes, last_incident
from tools.cluster.rest import Object


def patch(job: TrainingJob, **spec: object) -> None:
    """`kubectl patch`, as a user does it, or Kueue."""
    job.kubectl("patch", "dtjob", job.name, "--type=merge", "--patch", json.dumps({"spec": spec}))


def test_a_suspended_job_saves_loses_its_pods_and_goes_on_from_its_checkpoint(job: TrainingJob) -> None:
    before, counted = job.pods(), job.get()
    safe = int(job.report()["step"])  # trained before it was told, so it has to be in what is saved then
    patch(job, suspend=True)
    job.wait_phase("Suspended")
    job.wait_pods("the end of every pod", lambda pods: not pods)
    suspended = job.get()["status"]
    assert suspended["message"] == "spec.suspend is true: training goes on when that is false"
    assert suspended["ready"] == "0/3"
    assert {one["type"]: one["status"] for one in suspended["conditions"]}["Suspended"] == "True"

    # While it has no pods, where they go may be changed.
    selector: Object = {"kubernetes.io/os": "linux"}
    patch(job, suspend=False, replicaSpecs={"worker": {"template": {"spec": {"nodeSelector": selector}}}})
    found = job.wait_up()
    again = job.wait_restored(safe)
    job.wait_step(again["restoredStep"] + 50)
    after = job.pods()
    assert attempts(after) == {task: attempt + 1 for task, attempt in attempts(before).items()}
    assert after["worker-0"]["spec"]["nodeSelector"] == selector
    assert causes(found, counted) == {}
    assert last_incident(found) == last_incident(counted)
    assert found["status"]["startTime"] == counted["status"]["startTime"]
