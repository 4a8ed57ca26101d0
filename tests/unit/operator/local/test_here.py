# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

from dtjob.api.job import CleanPodPolicy
from dtjob.api.status.activity import Activity
from dtjob.crd.answers import problems
from dtjob.local.here import job_here, left_aside, manifest_of, rules_left_aside
from tests.unit.operator.builders import job
from tests.unit.operator.queued import queued_job


def test_a_job_here_has_the_runs_uid_and_no_status():
    here = job_here(job().model_copy(update={"status": {"phase": "Failed"}}), "uid-7")
    assert (here.metadata.uid, here.metadata.generation, here.status) == ("uid-7", 1, {})


def test_no_process_stays_after_the_run():
    assert job_here(job(cleanPodPolicy="None"), "u").spec.clean_pod_policy is CleanPodPolicy.RUNNING
    assert job_here(job(cleanPodPolicy="All"), "u").spec.clean_pod_policy is CleanPodPolicy.ALL


def test_the_stored_job_reads_as_the_job():
    here = job_here(job(), "uid-7")
    assert problems.to_job(manifest_of(here)) == here


def test_fields_without_a_meaning_in_local_runs_are_ignored_and_named():
    ttl = {"activeDeadlineSeconds": 60, "ttlSecondsAfterFinished": 0}
    whole = job(suspend=True, managedBy="kueue.x-k8s.io/multikueue", **ttl)
    spec = job_here(whole, "u").spec
    assert (spec.suspend, spec.managed_by, spec.ttl_seconds_after_finished) == (False, None, None)
    assert spec.active_deadline_seconds == 60
    fields = [line.split(":")[0] for line in left_aside(whole)]
    assert fields == ["spec.suspend", "spec.managedBy", "spec.ttlSecondsAfterFinished"]
    assert left_aside(job(suspend=False, managedBy="training.dtjob.dev/dtjob-controller")) == []


def test_elastic_workers_are_all_made_and_the_bounds_named():
    whole = job(workers=3, elasticPolicy={"minReplicas": 1, "maxReplicas": 8})
    workers = job_here(whole, "u").spec.replica_specs.worker
    assert workers is not None
    assert workers.replicas == 3
    (said,) = left_aside(whole)
    assert said.startswith("spec.elasticPolicy: the job trains with 3 workers here")


def test_a_queue_admits_no_jobs_here():
    (said,) = left_aside(queued_job())
    assert said == "label kueue.x-k8s.io/queue-name: team-a admits no jobs here; the job trains at once"


def test_gang_and_topology_are_ignored_in_local_runs():
    placed = job(scheduling={"gang": {}, "topology": {"required": "rack"}, "priorityClassName": "high"})
    here = job_here(placed, "u").spec.scheduling
    assert (here.gang, here.topology, here.priority_class_name) == (None, None, "high")
    fields = [line.split(":")[0] for line in left_aside(placed)]
    assert fields == ["spec.scheduling.gang", "spec.scheduling.topology"]


def test_the_time_of_earlier_starts_counts():
    before = Activity(seconds=40)
    assert manifest_of(job_here(job(), "u", before))["status"] == {"active": {"seconds": 40}}


def test_rules_on_what_only_pods_have_are_named():
    """Processes end with the reasons Error and Stalled."""
    reasons = [{"action": "FailJob", "onReasons": one} for one in (["Error", "Stalled"], ["Error", "OOMKilled"])]
    conditions = {"action": "RestartAndIgnoreMaxRestarts", "onPodConditions": [{"type": "DisruptionTarget"}]}
    asked = job(failurePolicy={"stallTimeoutSeconds": 60, "rules": [*reasons, conditions]})
    assert rules_left_aside(asked) == ["failurePolicy.rules[1].onReasons", "failurePolicy.rules[2].onPodConditions"]


@pytest.mark.parametrize(
    ("source", "instead"),
    [({"configMap": {"name": "files"}}, "the ConfigMap's"), ({"volume": {"emptyDir": {}}}, "that of the volume")],
)
def test_a_source_in_a_cluster_is_the_directory_here(source: dict[str, Any], instead: str) -> None:
    program = {"entrypoint": "a.py", "source": source, "requirements": "more.txt"}
    said = left_aside(job(program=program))
    assert said == [
        f"spec.program.source: a.py of this directory runs here, not {instead}",
        "spec.program.requirements: nothing is installed here; the packages of this Python are used",
    ]
