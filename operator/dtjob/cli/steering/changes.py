# SPDX-License-Identifier: Apache-2.0
"""suspend, resume, scale, restart and delete."""

import time
from collections.abc import Mapping
from typing import Any

from dtjob.api.counted import counted
from dtjob.api.names import KIND
from dtjob.api.phase import ENDED
from dtjob.cli.bad_input import BadInput
from dtjob.cli.watching.pods import in_order, newest, selector
from dtjob.cli.watching.wait import REACHED, wait
from dtjob.cli.watching.words import phase_of
from dtjob.client.changes import changes
from dtjob.client.cluster import Cluster

Object = Mapping[str, Any]
SUSPENDED_SECONDS = 3600.0
"""How long a restart waits for the job to save. checkpoint.saveTimeoutSeconds is at most that."""


def suspend(cluster: Cluster, name: str) -> str:
    """Suspend the job. Returns what happens."""
    _check_goes_on(cluster.get(KIND, name), "suspended")
    cluster.patch(KIND, name, {"spec": {"suspend": True}})
    return f"the pods of {name} are told to save and to end; dtjob resume {name} continues it"


def resume(cluster: Cluster, name: str) -> str:
    """Continue a suspended job. Returns what happens."""
    _check_goes_on(cluster.get(KIND, name), "resumed")
    cluster.patch(KIND, name, {"spec": {"suspend": False}})
    return f"{name} continues at its last checkpoint"


def scale(cluster: Cluster, name: str, workers: int) -> str:
    """Change the number of workers of an elastic job. Returns what happens."""
    job = cluster.get(KIND, name)
    _check_goes_on(job, "scaled")
    if not (job["spec"].get("replicaSpecs") or {}).get("worker"):
        raise BadInput(f"{name}: has no workers")
    if "elasticPolicy" not in job["spec"]:
        raise BadInput(f"{name}: its number of workers is fixed; only a job with elasticPolicy can be scaled")
    cluster.patch(KIND, name, {"spec": {"replicas": workers}}, "scale")
    return f"{name} saves and continues with {counted(workers, 'worker')}"


def restart(cluster: Cluster, name: str, task: str | None = None) -> str:
    """Restart the job from a new checkpoint, or the pod of one task. Returns what happened."""
    job = cluster.get(KIND, name)
    _check_goes_on(job, "restarted")
    if task is not None:
        pods = newest(in_order(cluster.list("Pod", selector(name)), task))
        if not pods:
            raise BadInput(f"--task: {name} has no pod of {task}")
        for pod in pods:
            cluster.delete("Pod", pod["metadata"]["name"])
        return f"{name}: {', '.join(pod['metadata']['name'] for pod in pods)} deleted; the operator replaces it"
    cluster.patch(KIND, name, {"spec": {"suspend": True}})
    code, phase = wait(cluster, name, "Suspended", SUSPENDED_SECONDS)
    if code != REACHED:
        raise BadInput(f"{name}: is {phase} and did not become Suspended, so it was not restarted")
    cluster.patch(KIND, name, {"spec": {"suspend": False}})
    return f"{name} has saved, and starts again at its last checkpoint"


def delete(cluster: Cluster, name: str, seconds: float | None) -> str:
    """Delete the job with its pods and files. `seconds`: how long to wait until it is gone, None: not at all."""
    cluster.get(KIND, name)
    cluster.delete(KIND, name, "Foreground" if seconds is not None else "Background")
    if seconds is not None:
        for found in changes(cluster, KIND, name, time.monotonic() + seconds):
            if found is None:
                break
    return f"{name} is deleted"


def _check_goes_on(job: Object, what: str) -> None:
    if phase_of(job) in ENDED:
        raise BadInput(f"{job['metadata']['name']}: has ended ({phase_of(job)}), so it cannot be {what}")
