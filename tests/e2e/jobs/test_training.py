# SPDX-License-Identifier: Apache-2.0
"""A whole run on a real cluster, as its user follows it: kubectl apply, get, logs, and the model on the volume."""

import json

from tests.cluster.support.jobs import columns
from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.training_job import TrainingJob, digits
from tests.e2e.jobs.support.volumes import held_out_accuracy, mounts_claim
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Api, Object

GOOD, LEARNT = 0.95, 0.8
"""Accuracies: what the undistributed run reaches on held-out digits too (0.97 to 0.99); what asynchronous steps do."""


def test_digits_under_multi_worker_mirrored(
    new_job: NewJob, trainer_image: str, cluster: Cluster, api: Api, namespace: str
) -> None:
    roles: Object = {"chief": {}, "worker": {"replicas": 2}, "evaluator": {}}
    job = new_job(digits(trainer_image, replicaSpecs=roles))
    job.wait_phase("Pending")
    assert columns(job.kubectl) | {"AGE": "", "READY": ""} == row(PHASE="Pending", REASON="WaitingForPods")
    job.wait_up()
    assert {task for task, pod in job.pods().items() if mounts_claim(pod, "digits")} == {"chief-0", "evaluator-0"}
    job.wait("a step in the status", lambda found: found["status"].get("progress", {}).get("step", 0) > 0)
    shown = columns(job.kubectl)
    assert shown | {"AGE": "", "STEP": ""} == row(PHASE="Running", READY="4/4", REASON="AllTasksRunning")
    assert 0 < int(shown["STEP"]) <= 690
    job.wait("a checkpoint in the status", lambda found: "checkpoint" in found["status"])
    wide = columns(job.kubectl, "-o", "wide")
    assert 0 <= int(wide["PROGRESS(%)"]) <= 100
    assert int(wide["CHECKPOINT"]) % 50 == 0 or wide["PHASE"] == "Succeeded"
    done = job.wait_phase("Succeeded")
    assert columns(job.kubectl) | {"AGE": ""} == row(PHASE="Succeeded", READY="4/4", STEP="690", REASON="Completed")
    assert columns(job.kubectl, "-o", "wide")["PROGRESS(%)"] == "100"
    assert metric(done, "val_accuracy") > GOOD
    assert done["status"]["progress"]["resume"] == "exact"
    job.wait_pods("the end of every pod", lambda pods: {p["status"]["phase"] for p in pods.values()} == {"Succeeded"})
    assert set(job.pods()) == {"chief-0", "worker-0", "worker-1", "evaluator-0"}, "ended pods stay, with their logs"
    assert not [task for task, pod in job.pods().items() if "deletionTimestamp" in pod["metadata"]]
    assert "held-out accuracy 0.9" in job.logs("chief-0")
    assert job.get()["status"]["evaluation"]["step"] == 690
    assert held_out_accuracy(api, cluster, namespace, trainer_image) > GOOD
    assert "condition met" in job.kubectl("wait", "--for=condition=Complete", "dtjob/digits", "--timeout=5s").stdout


def test_digits_under_parameter_server(
    new_job: NewJob, trainer_image: str, cluster: Cluster, api: Api, namespace: str
) -> None:
    """Its volume is shared: every task mounts it. (The other jobs' is the chief's alone.)"""
    roles: Object = {"chief": {}, "worker": {"replicas": 2}, "ps": {}}
    manifest = digits(trainer_image, strategy="ParameterServer", epochs=15, replicaSpecs=roles)
    manifest["spec"]["checkpoint"]["storage"]["mountOn"] = "All"
    job = new_job(manifest, shared=True)
    job.wait_up()
    assert set(job.pods()) == {"chief-0", "worker-0", "worker-1", "ps-0"}
    assert all(mounts_claim(pod, "digits") for pod in job.pods().values())
    done = job.wait_phase("Succeeded")
    assert done["status"]["progress"]["step"] == 345
    assert metric(done, "val_accuracy") > LEARNT
    assert done["status"]["restarts"] == {"total": 0}
    job.wait_pods("the end of ps and workers, which never end by themselves", lambda pods: set(pods) == {"chief-0"})
    assert "held-out accuracy 0." in job.logs("chief-0")
    assert held_out_accuracy(api, cluster, namespace, trainer_image) > LEARNT


def metric(found: Object, name: str) -> float:
    """A metric of the job's last report."""
    return next(float(one["value"]) for one in found["status"]["progress"]["metrics"] if one["name"] == name)


def row(**shown: str) -> dict[str, str]:
    """A line of `kubectl get dtjobs`, but for its age."""
    blank = {"NAME": "digits", "READY": "", "STEP": "", "RESTARTS": "0", "AGE": ""}
    return {**blank, **shown}


def test_training_pods_are_what_restricted_namespaces_let_in(job: TrainingJob) -> None:
    """The job's namespace enforces the restricted profile, so that they run there says most of it."""
    for task, pod in job.pods().items():
        assert pod["spec"]["automountServiceAccountToken"] is False, task
        look = ["ls", "/var/run/secrets/kubernetes.io/serviceaccount"]
        said = job.kubectl("exec", pod["metadata"]["name"], "--", *look, check=False)
        assert said.returncode != 0, task
        assert "No such file" in said.stderr, json.dumps(said.stderr)
        assert job.kubectl("exec", pod["metadata"]["name"], "--", "id", "-u").stdout == "1000\n", task
