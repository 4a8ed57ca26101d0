# SPDX-License-Identifier: Apache-2.0
"""suspend, resume, scale, restart and delete."""

from collections.abc import Mapping
from typing import Any

from dtjob.api.counted import counted
from dtjob.api.names import KIND
from dtjob.api.phase import ENDED, Phase
from dtjob.cli.bad_input import BadInput
from dtjob.cli.watching.pods import in_order, newest, selector
from dtjob.cli.watching.wait import NEVER, REACHED, wait
from dtjob.cli.watching.words import phase_of
from dtjob.client.cluster import Cluster
from dtjob.client.errors import ClientError, NotDone, NotFound, TimedOut

Object = Mapping[str, Any]
SUSPENDED_SECONDS = 3600.0
"""How long a restart waits for the job to save. checkpoint.saveTimeoutSeconds is at most that."""


def suspend(cluster: Cluster, name: str) -> str:
    """Suspend the job. Returns what happens."""
    _suspend(cluster, _going_on(cluster, name, "suspended"), True)
    return f"the pods of {name} are told to save and to end; dtjob resume {name} continues it"


def resume(cluster: Cluster, name: str) -> str:
    """Continue a suspended job. Returns what happens."""
    _suspend(cluster, _going_on(cluster, name, "resumed"), False)
    return f"{name} continues at its last checkpoint"


def scale(cluster: Cluster, name: str, workers: int) -> str:
    """Change the number of workers of an elastic job. Returns what happens."""
    job = _going_on(cluster, name, "scaled")
    if not (job["spec"].get("replicaSpecs") or {}).get("worker"):
        raise BadInput(f"{name}: has no workers")
    if "elasticPolicy" not in job["spec"]:
        raise BadInput(f"{name}: its number of workers is fixed; only a job with elasticPolicy can be scaled")
    change = {"spec": {"replicaSpecs": {"worker": {"replicas": workers}}}}  # the subresource scale ignores a uid
    cluster.patch(KIND, name, job["metadata"]["uid"], change)
    return f"{name} saves and continues with {counted(workers, 'worker')}"


def restart(cluster: Cluster, name: str, task: str | None = None) -> str:
    """Restart the job from a new checkpoint, or the pod of one task. Returns what happened.

    The job is suspended until its pods have ended, and resumed whatever happens meanwhile. Raises BadInput for a job
    that somebody else or a queue has suspended, and NotDone if its pods do not end.
    """
    job = _going_on(cluster, name, "restarted")
    if task is not None:
        pods = newest(in_order(cluster.list("Pod", selector(name)), task))
        if not pods:
            raise BadInput(f"--task: {name} has no pod of {task}")
        for pod in pods:
            cluster.delete("Pod", pod["metadata"]["name"], pod["metadata"]["uid"])
        return f"{name}: {', '.join(pod['metadata']['name'] for pod in pods)} deleted; the operator replaces it"
    _check_has_pods(job)
    _suspend(cluster, job, True)
    try:
        code, phase = wait(cluster, name, "Suspended", SUSPENDED_SECONDS)
    finally:
        _resume_again(cluster, job)
    if code == NEVER:
        raise NotDone(f"{name}: was not restarted, because it is {phase}")
    if code != REACHED:
        raise NotDone(f"{name}: its pods did not end within {SUSPENDED_SECONDS:.0f} s, so it goes on with them")
    return f"the pods of {name} have ended; it starts again at its last checkpoint"


def delete(cluster: Cluster, name: str, seconds: float | None) -> str:
    """Delete the job with its pods and files. `seconds`: how long to wait until it is gone, None: not at all. Raises
    TimedOut."""
    uid = cluster.get(KIND, name)["metadata"]["uid"]
    cluster.delete(KIND, name, uid, "Foreground" if seconds is not None else "Background")
    if seconds is not None and wait(cluster, name, "Deleted", seconds, uid)[0] != REACHED:
        raise TimedOut(f"{name}: is told to end, and is not gone after {seconds:.0f} s")
    return f"{name} is deleted"


def _going_on(cluster: Cluster, name: str, what: str) -> Object:
    """The job. Raises BadInput if it has ended."""
    job = cluster.get(KIND, name)
    if phase_of(job) in ENDED:
        raise BadInput(f"{name}: has ended ({phase_of(job)}), so it cannot be {what}")
    return job


def _check_has_pods(job: Object) -> None:
    """Raise BadInput if the job is suspended: to resume it is a decision of whoever suspended it."""
    name = job["metadata"]["name"]
    if job["spec"].get("suspend"):
        raise BadInput(f"{name}: is suspended, so it has no pods to restart; dtjob resume {name} continues it")
    if phase_of(job) == Phase.SUSPENDED:
        raise BadInput(f"{name}: waits in its queue, so it has no pods to restart")


def _suspend(cluster: Cluster, job: Object, wanted: bool) -> None:
    cluster.patch(KIND, job["metadata"]["name"], job["metadata"]["uid"], {"spec": {"suspend": wanted}})


def _resume_again(cluster: Cluster, job: Object) -> None:
    """Resume the job that this command has suspended. Raises NotDone if it stays suspended."""
    name = job["metadata"]["name"]
    try:
        _suspend(cluster, job, False)
    except NotFound:
        return
    except ClientError as error:
        raise NotDone(f"{name}: stays suspended; dtjob resume {name} continues it: {error}") from None
