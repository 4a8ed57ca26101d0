# SPDX-License-Identifier: Apache-2.0
"""The operator comes and goes; jobs that train do not notice."""

import pytest

from tests.cluster.support.chart import NAMESPACE, RELEASE
from tests.e2e.jobs.conftest import NewJob
from tests.e2e.jobs.support.release import Release
from tests.e2e.jobs.support.training_job import TrainingJob, attempts, causes, digits, ids, running
from tools.cluster.cluster import Cluster
from tools.cluster.rest import CRD, Api, Object


@pytest.fixture
def in_place(job: TrainingJob) -> int:
    """How often the chief was started again in its container before the test: a machine that stands still for seconds
    while TensorFlow starts makes it lose its peers."""
    return int(job.report()["restartsInPlace"])


@pytest.fixture
def counted(job: TrainingJob) -> Object:
    """The job as it was before the test."""
    return job.get()


def assert_nothing_noticed(
    job: TrainingJob, before: dict[str, Object], counted: Object, in_place: int, step: int
) -> None:
    """The same pods, containers and processes, further on."""
    job.wait_step(step + 50)
    assert ids(job.pods()) == ids(before)
    assert attempts(job.pods()) == attempts(before)
    assert job.get()["status"]["restarts"] == counted["status"]["restarts"]
    assert job.report().get("restartsInPlace") == in_place


def test_the_operators_pod_is_deleted(
    job: TrainingJob, counted: Object, in_place: int, operator: Release, cluster: Cluster
) -> None:
    before, step = job.pods(), job.wait_step(1)
    (old,) = operator.pods()
    cluster.kubectl("--namespace", NAMESPACE, "delete", "pod", old["metadata"]["name"])
    operator.wait_pods(1)
    reached = job.wait_step(step + 50)
    job.wait("progress from the new operator", lambda found: found["status"]["progress"]["step"] >= reached)
    assert_nothing_noticed(job, before, counted, in_place, reached)


def test_a_worker_dies_while_the_operator_is_away(
    job: TrainingJob, counted: Object, in_place: int, operator: Release, cluster: Cluster
) -> None:
    before = job.pods()
    operator.scale(0)
    saved = job.wait_checkpoint()
    cluster.kill_container(before["worker-0"], "tensorflow")
    job.wait_pods("the end of worker-0's container", lambda pods: not running(pods["worker-0"]))
    operator.scale(1)
    job.wait_replaced(before, "worker-0")
    again = job.wait_restored(saved)
    found = job.wait_up()
    assert again["restartsInPlace"] > in_place
    assert causes(found, counted) == {"Signal": 1}
    survivors = ("chief-0", "worker-1")
    assert {task: ids(job.pods())[task] for task in survivors} == {task: ids(before)[task] for task in survivors}


@pytest.mark.slow  # tests/cluster/test_chart_upgrade.py does it in every run
def test_the_chart_is_upgraded_under_a_job(job: TrainingJob, counted: Object, in_place: int, operator: Release) -> None:
    before, step = job.pods(), job.wait_step(1)
    (old,) = operator.pods()
    operator.upgrade("operator.replicas=2", "operator.log.level=debug")
    operator.wait_pods(2)
    assert old["metadata"]["uid"] not in [pod["metadata"]["uid"] for pod in operator.pods()]
    reached = job.wait_step(step + 50)
    job.wait("progress from the new operator", lambda found: found["status"]["progress"]["step"] >= reached)
    assert_nothing_noticed(job, before, counted, in_place, reached)
    operator.upgrade()
    operator.wait_pods(1)


@pytest.mark.slow  # tests/cluster/test_chart.py uninstalls the chart in every run
def test_uninstalling_leaves_jobs_and_their_definition(
    job: TrainingJob, counted: Object, in_place: int, operator: Release, api: Api, new_job: NewJob, trainer_image: str
) -> None:
    before, step = job.pods(), job.wait_step(1)
    operator.uninstall()
    assert not operator.pods()
    assert api.list("leases", NAMESPACE) == []  # whose holder's rights went before its pod
    assert "deletionTimestamp" not in api.get("customresourcedefinitions", None, CRD)["metadata"]
    reached = job.wait_step(step + 50)
    notes = operator.install()
    assert "kubectl get dtjobs" in notes
    job.wait("progress from the new operator", lambda found: found["status"]["progress"]["step"] >= reached)
    assert_nothing_noticed(job, before, counted, in_place, reached)
    second = new_job(digits(trainer_image, "second", "Default", epochs=1, replicaSpecs={"chief": {}}))
    second.wait_phase("Running")


def test_helm_test_passes(operator: Release) -> None:
    assert "Succeeded" in operator.helm("test", RELEASE, "--timeout=120s")
