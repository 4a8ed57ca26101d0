# SPDX-License-Identifier: Apache-2.0
"""The two forms of one job, and what statuses and labels say."""

import pytest

from benchmarks.operators import jobs
from benchmarks.operators.jobs import Shape
from dtjob.objects import labels


@pytest.mark.parametrize("shape", [Shape(0), Shape(3), Shape(8, ps=1)])
def test_both_forms_have_the_same_tasks(shape: Shape):
    ours, theirs = jobs.dtjob("a", shape), jobs.tfjob("a", shape)
    counts = {role.lower(): one["replicas"] for role, one in theirs["spec"]["tfReplicaSpecs"].items()}
    assert counts == {role: one.get("replicas", 1) for role, one in ours["spec"]["replicaSpecs"].items()}
    assert sum(counts.values()) == shape.pods


@pytest.mark.parametrize("shape", [Shape(3), Shape(8, ps=1)])
def test_the_bare_loop_posts_what_dtjob_would(shape: Shape):
    stored = jobs.dtjob("a", shape)
    stored["metadata"] |= {"namespace": jobs.NAMESPACE, "uid": "1-2-3"}
    objects = jobs.objects_of(stored)
    assert [one["kind"] for one in objects[:3]] == ["Service", "ConfigMap", "NetworkPolicy"]
    assert [one["kind"] for one in objects[3:]] == ["Pod"] * shape.pods
    assert {labels.controller_uid(one) for one in objects} == {"1-2-3"}
    assert jobs.task_of_dtjob(labels.of(objects[-1]))[0] == "a"


@pytest.mark.parametrize(
    ("conditions", "phase"),
    [
        ([], ""),
        ([("Created", "True")], ""),
        ([("Created", "True"), ("Running", "True")], "Running"),
        ([("Running", "False"), ("Restarting", "True")], ""),
        ([("Running", "False"), ("Succeeded", "True")], "Succeeded"),
        ([("Running", "False"), ("Failed", "True")], "Failed"),
    ],
)
def test_a_tfjob_is_where_its_true_conditions_say(conditions: list[tuple[str, str]], phase: str):
    found = {"status": {"conditions": [{"type": type_, "status": status} for type_, status in conditions]}}
    assert jobs.phase_of_tfjob(found) == phase


def test_a_job_without_a_status_is_nowhere():
    assert (jobs.phase_of_dtjob({}), jobs.phase_of_tfjob({})) == ("", "")


def test_the_task_of_a_pod_is_read_from_its_labels():
    found = {f"training.kubeflow.org/{name}": value for name, value in zip(jobs.TFJOB_LABELS, "abc", strict=True)}
    assert jobs.task_of_tfjob(found) == ("a", "b", "c")
    assert jobs.task_of_dtjob({}) == ("", "", "")


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (137, "Failed")])
def test_a_pod_ends_by_its_training_containers_state(code: int, phase: str):
    running = {"name": "tensorflow", "image": "a", "ready": True, "state": {"running": {}}}
    status = jobs.ended({"status": {"containerStatuses": [running]}}, code)["status"]
    assert status["phase"] == phase
    (container,) = status["containerStatuses"]
    assert container["state"].keys() == {"terminated"}
    assert container["state"]["terminated"]["exitCode"] == code
    assert running["state"] == {"running": {}}
