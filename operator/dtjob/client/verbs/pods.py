# SPDX-License-Identifier: Apache-2.0
"""The pods of a job, by task and attempt, and the Events about them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dtjob.api.names import KIND, TRAINING_CONTAINER
from dtjob.bad_input import BadInput
from dtjob.client.cluster import Cluster
from dtjob.objects import labels

Object = Mapping[str, Any]
ORDER = ("chief", "worker", "ps", "data", "evaluator")
TASK = re.compile(rf"({'|'.join(ORDER)})(?:-(\d+))?")
_OF_A_POD = re.compile(rf"-({'|'.join(ORDER)})-\d+-\d+")


def selector(job: str) -> str:
    """The label selector of the job's pods."""
    return f"{labels.JOB_NAME}={job}"


def check_task(task: str | None) -> None:
    """Raise BadInput if this is neither a task nor a role. None is all tasks."""
    if task is not None and not TASK.fullmatch(task):
        raise BadInput(f"--task: {task} is no task; write for example worker-1, or worker for all of them")


def in_order(pods: Sequence[Object], task: str | None = None) -> list[Object]:
    """The pods of this task or role, by task and attempt. Raises BadInput if `task` is no task."""
    check_task(task)
    ours = [pod for pod in pods if labels.of(pod).get(labels.ROLE) in ORDER]
    if task is not None:
        ours = [pod for pod in ours if task in (task_of(pod), labels.of(pod)[labels.ROLE])]
    return sorted(ours, key=lambda pod: (ORDER.index(labels.of(pod)[labels.ROLE]), _index_of(pod), attempt_of(pod)))


def task_of(pod: Object) -> str:
    """The task, such as worker-1."""
    return f"{labels.of(pod)[labels.ROLE]}-{_index_of(pod)}"


def attempt_of(pod: Object) -> int:
    """The attempt at the task, from 0."""
    return int(labels.of(pod).get(labels.ATTEMPT, "0"))


def newest(pods: Sequence[Object]) -> list[Object]:
    """The newest attempt at each task, of pods in order."""
    return list({task_of(pod): pod for pod in pods}.values())


def container_state(pod: Object, container: str = TRAINING_CONTAINER) -> tuple[str, Mapping[str, Any]]:
    """The state of the container, `waiting`, `running` or `terminated`, and what is known of it."""
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        if one.get("name") == container:
            for name, state in (one.get("state") or {}).items():
                return name, state
    return "waiting", {}


def state_of(pod: Object, container: str = TRAINING_CONTAINER) -> str:
    """What the pod does, in a few words."""
    if pod["metadata"].get("deletionTimestamp"):
        return "ending"
    name, state = container_state(pod, container)
    if name == "terminated":
        code = state.get("exitCode")
        return "finished" if code == 0 else f"failed ({code})"
    if name == "running":
        return "running"
    return str(state.get("reason") or (pod.get("status") or {}).get("reason") or "pending")


def _index_of(pod: Object) -> int:
    return int(labels.of(pod).get(labels.INDEX, "0"))


def events(cluster: Cluster, name: str) -> list[Object]:
    """The Events about a job and its pods, the newest last. A cluster keeps them for an hour. Raises ClientError."""
    uid = cluster.get(KIND, name)["metadata"]["uid"]

    def is_about(event: Object) -> bool:
        about = event.get("involvedObject") or {}
        if about.get("uid") == uid:
            return True
        other = str(about.get("name", ""))
        return about.get("kind") == "Pod" and other.startswith(name) and bool(_OF_A_POD.fullmatch(other[len(name) :]))

    return sorted(filter(is_about, cluster.list("Event")), key=time_of)


def time_of(event: Object) -> str:
    """When it last happened."""
    series = (event.get("series") or {}).get("lastObservedTime")
    times = (series, event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp"))
    return str(next((time for time in times if time), ""))
