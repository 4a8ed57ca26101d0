# SPDX-License-Identifier: Apache-2.0
"""The Workload that a queued job has."""

import pytest

from dtjob.objects import kueue
from dtjob.objects.defaults import NO_DEFAULTS
from tests.unit.operator import builders
from tests.unit.operator.queued import QUEUE, labelled, queued_job


def test_a_workload_is_owned_by_its_job_and_in_the_jobs_queue() -> None:
    made = kueue.workload(queued_job(), NO_DEFAULTS, None)
    metadata = made["metadata"]
    assert (made["apiVersion"], made["kind"]) == ("kueue.x-k8s.io/v1beta2", "Workload")
    assert metadata["labels"]["kueue.x-k8s.io/job-uid"] == builders.JOB_UID
    owner = metadata["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("DistributedTrainingJob", builders.JOB_UID, True)
    assert made["spec"]["queueName"] == "team-a"
    assert "priority" not in made["spec"]


def test_a_job_without_a_queue_has_no_workload() -> None:
    with pytest.raises(ValueError, match="queue-name"):
        kueue.workload(builders.job(), NO_DEFAULTS, None)


def test_the_pod_sets_of_a_workload_are_the_roles_with_their_pods() -> None:
    asked = {"requests": {"cpu": "2"}}
    job = queued_job(
        strategy="ParameterServer", evaluator=True, replicaSpecs={
            "chief": {}, "worker": {"replicas": 3, "resources": asked}, "ps": {"replicas": 2}, "evaluator": {},
        },
    )  # fmt: skip
    sets = kueue.pod_sets(job, NO_DEFAULTS)
    assert [(one["name"], one["count"]) for one in sets] == [("chief", 1), ("worker", 3), ("ps", 2), ("evaluator", 1)]
    worker = sets[1]["template"]
    assert worker["spec"]["containers"][0]["resources"] == asked
    assert worker["metadata"]["labels"]["training.dtjob.dev/role"] == "worker"
    # Only what all pods of a role have: nothing of a task, nothing of an attempt.
    assert "hostname" not in worker["spec"]
    assert "env" not in worker["spec"]["containers"][0]
    assert {"training.dtjob.dev/index", "training.dtjob.dev/attempt"}.isdisjoint(worker["metadata"]["labels"])
    assert "affinity" not in sets[3]["template"]["spec"]
    assert not any("minCount" in one for one in sets)


def test_the_name_of_a_workload_fits_a_label_and_is_unique_to_its_job() -> None:
    long = queued_job(name="a" * 60)
    assert len(kueue.workload_name(long)) == 63
    assert kueue.workload_name(queued_job()) != kueue.workload_name(queued_job(uid="other"))
    assert kueue.workload_name(queued_job()).startswith("distributedtrainingjob-digits-")


def test_the_label_of_a_class_comes_before_the_pods_class() -> None:
    job = queued_job(scheduling={"priorityClassName": "pods"})
    assert kueue.priority_class_of(job) == ("PriorityClass", "pods")
    job = labelled(job, {**QUEUE, kueue.PRIORITY_CLASS: "high"})
    assert kueue.priority_class_of(job) == ("WorkloadPriorityClass", "high")
    spec = kueue.workload(job, NO_DEFAULTS, kueue.priority("WorkloadPriorityClass", "high", 100))["spec"]
    assert (spec["priority"], spec["priorityClassRef"]["group"]) == (100, "kueue.x-k8s.io")
    assert kueue.priority("PriorityClass", "pods", 1)["priorityClassRef"]["group"] == "scheduling.k8s.io"


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("0", None), ("soon", None)])
def test_the_maximum_execution_time_of_a_job_is_in_its_workload(text: str, seconds: int | None) -> None:
    spec = kueue.workload(queued_job({**QUEUE, kueue.MAX_EXEC_TIME: text}), NO_DEFAULTS, None)["spec"]
    assert spec.get("maximumExecutionTimeSeconds") == seconds


def test_the_shape_of_a_workload_changes_only_with_the_jobs_pods() -> None:
    assert kueue.shape_of(queued_job()) == kueue.shape_of(queued_job({**QUEUE, "a": "b"}, suspend=True))
    assert kueue.shape_of(queued_job()) != kueue.shape_of(queued_job(workers=3))


def test_the_needs_of_a_job_are_the_sum_over_its_pods() -> None:
    chief = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    worker = {"replicas": 5, "resources": {"limits": {"cpu": "500m"}}}
    assert kueue.needs(queued_job(replicaSpecs={"chief": chief, "worker": worker}), NO_DEFAULTS) == "3 cpu, 1Gi memory"
    assert kueue.needs(queued_job(), NO_DEFAULTS) == "3 pods"
    odd = {"chief": {"resources": {"requests": {"cpu": "much"}}}}
    assert kueue.needs(queued_job(strategy="Default", replicaSpecs=odd), NO_DEFAULTS) == "1 pod"
