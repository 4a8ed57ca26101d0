# SPDX-License-Identifier: Apache-2.0
"""`dtjob exec`: a command in a pod of a job."""

from collections.abc import Sequence

from dtjob.api.names import KIND, TRAINING_CONTAINER
from dtjob.client import exec as executing
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Refused
from dtjob.client.verbs.pods import container_state, in_order, newest, selector


def run_in_task(
    cluster: Cluster,
    job: str,
    task: str | None,
    container: str | None,
    command: Sequence[str],
    *,
    stdin: bool,
    tty: bool,
) -> int:
    """Run the command in the pod of a task, by default in that of the chief task. Returns its exit code.

    Raises BadInput on what is no task, and Refused if the pod does not run.
    """
    in_order([], task)
    cluster.get(KIND, job)
    pods = newest(in_order(cluster.list("Pod", selector(job)), task))
    running = [pod for pod in (pods if task else pods[:1]) if container_state(pod)[0] == "running"]
    if not running:
        what = f"no pod of {task} runs" if task else "the pod of its first task does not run"
        raise Refused(f"{job}: {what}; dtjob status {job} says why")
    name = str(running[0]["metadata"]["name"])
    return executing.run(cluster, name, container or TRAINING_CONTAINER, command, stdin=stdin, tty=tty)
