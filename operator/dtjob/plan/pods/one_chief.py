# SPDX-License-Identifier: Apache-2.0
"""One chief: the task that writes checkpoints starts only when no other pod can write them any more.

A watch by label says DELETED of an object whose label somebody has removed. Before such a pod is replaced, the API
server is asked for it by name, which nobody can change. That holds for pods of every task.
"""

from datetime import datetime

from dtjob.api.job import Job
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.draft import Draft
from dtjob.plan.failure.budget import is_due
from dtjob.plan.seen.children import PodState, ended, facts_of, node_of
from dtjob.plan.seen.situation import Situation


def writer_left(situation: Situation) -> Manifest | None:
    """The pod whose end the chief's next pod waits for. None if it waits for none, or exists already.

    That is an earlier attempt of the same task, or any pod with this job's name that the job does not control. A job
    that was deleted and applied again has the same claim, and `kubectl delete` returns while the old pod still saves.
    """
    chief = situation.chief
    if chief.pod is not None:
        return None
    earlier = next((pod for pod in chief.pods if not ended(pod)), None)
    return earlier or next((pod for pod in _others(situation) if not facts_of(pod).is_terminal), None)


def why_the_chief_waits(situation: Situation) -> str:
    """Which pod the chief waits for, in words; empty if it waits for none."""
    pod = writer_left(situation)
    if pod is None:
        return ""
    name = situation.chief.task.id
    whose = "its earlier pod" if _controls(situation.group_job, pod) else "pod"
    text = f"{name} waits: {whose} {pod['metadata']['name']}{_where(pod, situation.now)} has not ended"
    if whose == "pod":
        text += ", may write the same checkpoints, and is not this job's but bears its name"
    return text


def _others(situation: Situation) -> list[Manifest]:
    return [
        one for one in situation.children.objects if one["kind"] == "Pod" and not _controls(situation.group_job, one)
    ]


def _controls(job: Job, pod: Manifest) -> bool:
    """Whether the pod's owner is this job in name and uid: somebody may have edited one of them."""
    return facts_of(pod).controller == job.metadata.uid and labels.controlling_job(pod) == job.metadata.name


def _where(pod: Manifest, now: datetime) -> str:
    node, lost = node_of(pod), facts_of(pod).lost_at
    if not node:
        return ""
    if lost is None or now < lost:
        return f" on node {node}"
    # Kubernetes keeps such a pod until the node is back, gone, or tainted out-of-service.
    return f" on node {node}, which does not answer (is it down for good? taint it node.kubernetes.io/out-of-service),"


LOOKED_BACK = 5
"""How many earlier attempts are asked for. A chief is made only when all before it have ended, so only the last one
that was made may be running. Few attempts after it are given up before they are made."""


def find_vanished(situation: Situation) -> None:
    """Raises Unread for pods that existed, are not seen any more, and were not asked for yet."""
    if situation.status.internal.all_created:
        views = situation.views
    elif situation.resizing is not None:
        views = (situation.chief,)  # its next one is so many attempts later that it would not be looked for
    else:
        return
    missing = [view for view in views if view.state is PodState.MISSING]
    names = [topology.pod_name(situation.group_job, view.task, view.attempt) for view in missing]
    situation.children.found(*(("Pod", name) for name in names))


def find_earlier_chiefs(draft: Draft) -> None:
    """If a chief is about to be made and earlier pods of it may be running, raises Unread for those not asked for yet.
    If the chief waits for a pod, look again when that counts as lost: then the words about it change."""
    situation = draft.situation
    job, chief, writer = situation.group_job, situation.chief, writer_left(situation)
    if writer is not None:
        draft.look_again(facts_of(writer).lost_at)
        return
    if chief.state is not PodState.MISSING or not is_due(situation.status.internal.incident, situation.now):
        return
    seen = {pod["metadata"]["name"] for pod in chief.pods}
    names = []
    for attempt in reversed(range(max(0, chief.attempt - LOOKED_BACK), chief.attempt)):
        name = topology.pod_name(job, chief.task, attempt)
        if name in seen:
            break
        names.append(("Pod", name))
    situation.children.found(*names)
