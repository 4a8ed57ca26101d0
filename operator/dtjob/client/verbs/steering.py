# SPDX-License-Identifier: Apache-2.0
"""Suspend, resume, scale, restart and delete a job. Each raises ClientError, such as NotFound."""

from collections.abc import Mapping
from typing import Any

from dtjob.api.names import KIND
from dtjob.api.phase import ENDED, Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError, JobFailed, NotDone, NotFound, Refused, TimedOut
from dtjob.client.signals import signals_as_exceptions
from dtjob.client.verbs.pods import check_task, in_order, newest, selector
from dtjob.client.verbs.wait import DELETED, check_can_reach, wait
from dtjob.client.verbs.words import is_being_deleted, phase_of

Object = Mapping[str, Any]
SUSPENDED_SECONDS = 3600.0
"""How long a restart waits for the job to save. checkpoint.saveTimeoutSeconds is at most that."""


def suspend(cluster: Cluster, name: str) -> None:
    """Have the pods save and end. Raises Refused if the job has ended."""
    _suspend(cluster, _going_on(cluster, name, "suspended"), True)


def resume(cluster: Cluster, name: str) -> None:
    """Continue a suspended job at its last checkpoint. Raises Refused if it has ended."""
    _suspend(cluster, _going_on(cluster, name, "resumed"), False)


def scale(cluster: Cluster, name: str, replicas: int, role: Role = Role.WORKER) -> None:
    """Change the number of workers, or of data workers. Raises Refused if the job has ended, if it has no such tasks,
    and if it is not elastic and workers are meant."""
    job = _going_on(cluster, name, "scaled")
    if role is Role.WORKER:
        check_elastic(job)
    elif not (job["spec"].get("replicaSpecs") or {}).get(role.value):
        raise Refused(f"{name}: has no data workers; add replicaSpecs.{role.value}")
    # Not the subresource scale: it ignores the uid, so it would scale another job that has the name meanwhile.
    change = {"spec": {"replicaSpecs": {role.value: {"replicas": replicas}}}}
    cluster.patch(KIND, name, job["metadata"]["uid"], change)


def restart(cluster: Cluster, name: str) -> None:
    """Suspend the job until its pods have saved and ended, and resume it, whatever happens meanwhile.

    Raises Refused for a job that has ended, or that somebody else or a queue has suspended. Raises NotDone if its pods
    do not end, or if somebody else resumes it before.
    """
    job = _going_on(cluster, name, "restarted")
    # To resume a suspended job is a decision of whoever suspended it.
    if job["spec"].get("suspend"):
        raise Refused(f"{name}: is suspended, so it has no pods to restart; dtjob resume {name} continues it")
    if phase_of(job) == Phase.SUSPENDED:
        raise Refused(f"{name}: waits in its queue, so it has no pods to restart")
    with signals_as_exceptions():
        _suspend_and_resume(cluster, job)


def _suspend_and_resume(cluster: Cluster, job: Object) -> None:
    name, ours = job["metadata"]["name"], True

    def check(found: Object, wanted: str) -> None:
        nonlocal ours
        check_can_reach(found, wanted)
        if not found["spec"].get("suspend"):
            ours = False
            raise NotDone(f"{name}: was not restarted: somebody resumed it before its pods ended")

    try:
        try:
            _suspend(cluster, job, True)
        except Refused:  # nothing has changed; without an answer it may have
            ours = False
            raise
        wait(cluster, name, "Suspended", SUSPENDED_SECONDS, job["metadata"]["uid"], check)
    except JobFailed as error:
        raise NotDone(f"{name}: was not restarted: {str(error).removeprefix(f'{name}: ')}") from None
    except TimedOut:
        said = f"{name}: its pods did not end within {SUSPENDED_SECONDS:.0f} s, so it goes on with them"
        raise NotDone(said) from None
    finally:
        try:
            if ours:
                _suspend(cluster, job, False)
        except NotFound:
            pass
        except (ClientError, KeyboardInterrupt, SystemExit) as error:
            why = str(error) if isinstance(error, ClientError) else "interrupted again"
            raise NotDone(f"{name}: stays suspended; dtjob resume {name} continues it: {why}") from None


def replace_task(cluster: Cluster, name: str, task: str) -> list[str]:
    """Delete the newest pod of a task or role, which the operator replaces. Returns the names of the pods.

    Raises BadInput on what is no task, and Refused if there is no pod.
    """
    check_task(task)
    _going_on(cluster, name, "restarted")
    pods = newest(in_order(cluster.list("Pod", selector(name)), task))
    if not pods:
        raise Refused(f"{name}: has no pod of {task}")
    for pod in pods:
        cluster.delete("Pod", pod["metadata"]["name"], pod["metadata"]["uid"])
    return [pod["metadata"]["name"] for pod in pods]


def delete(cluster: Cluster, name: str, seconds: float | None = None) -> None:
    """Delete the job with its pods and files, and wait for so long until it is gone. Raises TimedOut.

    `seconds` None: do not wait.
    """
    uid = cluster.get(KIND, name)["metadata"]["uid"]
    cluster.delete(KIND, name, uid, "Foreground" if seconds is not None else "Background")
    if seconds is not None:
        try:
            wait(cluster, name, DELETED, seconds, uid)
        except TimedOut:
            raise TimedOut(f"{name}: is told to end, and is not gone after {seconds:.0f} s") from None


def _going_on(cluster: Cluster, name: str, what: str) -> Object:
    """The job. Raises Refused if it has ended or is being deleted."""
    job = cluster.get(KIND, name)
    check_goes_on(job, what)
    return job


def check_goes_on(job: Object, what: str) -> None:
    """Raise Refused if the job has ended or is being deleted. `what`: what it cannot be then, such as suspended."""
    if is_being_deleted(job):
        raise Refused(f"{job['metadata']['name']}: is being deleted, so it cannot be {what}")
    if phase_of(job) in ENDED:
        raise Refused(f"{job['metadata']['name']}: has ended ({phase_of(job)}), so it cannot be {what}")


def check_elastic(job: Object) -> None:
    """Raise Refused if the number of workers cannot change."""
    name = job["metadata"]["name"]
    if not (job["spec"].get("replicaSpecs") or {}).get("worker"):
        raise Refused(f"{name}: has no workers")
    if "elasticPolicy" not in job["spec"]:
        raise Refused(f"{name}: its number of workers is fixed; only a job with elasticPolicy can be scaled")


def _suspend(cluster: Cluster, job: Object, wanted: bool) -> None:
    cluster.patch(KIND, job["metadata"]["name"], job["metadata"]["uid"], {"spec": {"suspend": wanted}})
