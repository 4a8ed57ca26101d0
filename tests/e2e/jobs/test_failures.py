# SPDX-License-Identifier: Apache-2.0
"""Failures of a running job: training goes on from the chief's checkpoint, in the survivors' own containers."""

from collections.abc import Callable

from tests.e2e.jobs.support.training_job import TrainingJob, attempts, causes, ids, last_incident
from tools.cluster.cluster import Cluster
from tools.cluster.rest import Object


def goes_on(job: TrainingJob, lost: set[str], cause: str, fail: Callable[[dict[str, Object]], int]) -> Object:
    """Make the tasks `lost` fail and watch training go on, one restart counted under `cause`. `fail` gets the pods and
    returns a step that is safe: of a checkpoint that was there before. Returns the job."""
    before, counted = job.pods(), job.get()
    safe = fail(before)

    job.wait_replaced(before, *sorted(lost))
    again = job.wait_restored(safe)
    job.wait_step(again["restoredStep"] + 50)
    found = job.wait_up()
    after = job.pods()
    assert attempts(after) == {task: attempt + (task in lost) for task, attempt in attempts(before).items()}
    survivors = before.keys() - lost
    assert {task: ids(after)[task] for task in survivors} == {task: ids(before)[task] for task in survivors}
    assert causes(found, counted) == {cause: 1}
    return found


def test_a_worker_container_is_killed(job: TrainingJob, cluster: Cluster) -> None:
    def kill(pods: dict[str, Object]) -> int:
        saved = job.wait_checkpoint()
        cluster.kill_container(pods["worker-1"], "tensorflow")
        return saved

    in_place = {task: job.report(task)["restartsInPlace"] for task in ("chief-0", "worker-0")}
    found = goes_on(job, {"worker-1"}, "Signal", kill)
    first = found["status"]["lastFailure"]
    assert (first["task"], first["exitCode"], first["message"]) == ("worker-1", 137, "was killed (SIGKILL)")
    assert found["status"]["internal"]["incident"].get("charged", 0) == 1
    assert all(job.report(task)["restartsInPlace"] > earlier for task, earlier in in_place.items())


def test_a_workers_program_is_killed(job: TrainingJob, cluster: Cluster) -> None:
    """No pod goes: its supervisor starts it again, and the job's status and events tell of it."""
    job.wait_checkpoint()
    before, counted = job.pods(), job.get()
    pid = job.report("worker-1")["trainingPid"]
    kill = f"import os; os.kill({pid}, 9)"
    job.kubectl("exec", before["worker-1"]["metadata"]["name"], "-c", "tensorflow", "--", "python3", "-c", kill)
    found = job.wait("the restart in the status", lambda now: causes(now, counted) == {"Signal": 1})
    again = job.wait_restored(1)
    job.wait_step(again["restoredStep"] + 50)
    assert ids(job.pods()) == ids(before)
    assert last_incident(found) == last_incident(counted)
    events = job.kubectl("events", f"--for=dtjob/{job.name}")
    assert "worker-1 was killed (SIGKILL) after step" in events.stdout


def test_a_worker_pod_is_deleted(job: TrainingJob) -> None:
    found = goes_on(job, {"worker-0"}, "Deleted", lambda pods: delete(job, pods["worker-0"]))
    assert found["status"]["internal"]["incident"].get("charged", 0) == 0


def test_the_chief_pod_is_deleted(job: TrainingJob) -> None:
    found = goes_on(job, {"chief-0"}, "Deleted", lambda pods: delete(job, pods["chief-0"]))
    assert found["status"]["internal"]["incident"].get("charged", 0) == 0


def delete(job: TrainingJob, pod: Object) -> int:
    """`kubectl delete pod`; it saves before it goes, so nothing that was trained until now may be lost."""
    step = int(job.report()["step"])
    job.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
    return step


def test_a_node_is_drained(job: TrainingJob, cluster: Cluster) -> None:
    before = job.pods()
    node = before["worker-0"]["spec"]["nodeName"]
    there = {task for task, pod in before.items() if pod["spec"]["nodeName"] == node}

    def drain(pods: dict[str, Object]) -> int:
        step = int(job.report()["step"])
        selector = f"--pod-selector=training.dtjob.dev/job-name={job.name}"
        try:
            cluster.kubectl("drain", node, selector, "--force", "--ignore-daemonsets", "--timeout=120s")
        finally:
            cluster.kubectl("uncordon", node)
        return step

    found = goes_on(job, there, "Disruption", drain)
    assert found["status"]["internal"]["incident"].get("charged", 0) == 0
    assert "EvictionByEvictionAPI" in found["status"]["lastFailure"]["message"]
