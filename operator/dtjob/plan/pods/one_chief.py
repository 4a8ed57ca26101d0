# SPDX-License-Identifier: Apache-2.0
"""One chief: the task that writes checkpoints starts only when no other pod can write them any more."""

from __future__ import annotations

from datetime import datetime

from dtjob.api.job import Job
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import ended, is_terminal, lost_at, node_of
from dtjob.plan.seen.pod_facts import facts_of
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
    return earlier or next((pod for pod in _others(situation) if not is_terminal(pod)), None)


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


def when_its_node_counts_as_lost(situation: Situation) -> datetime | None:
    """When the words about the pod that the chief waits for change though nothing happens."""
    pod = writer_left(situation)
    return lost_at(pod) if pod is not None else None


def _others(situation: Situation) -> list[Manifest]:
    return [
        one for one in situation.children.objects if one["kind"] == "Pod" and not _controls(situation.group_job, one)
    ]


def _controls(job: Job, pod: Manifest) -> bool:
    """Whether the pod's owner is this job in name and uid: somebody may have edited one of them."""
    return facts_of(pod).controller == job.metadata.uid and labels.controlling_job(pod) == job.metadata.name


def _where(pod: Manifest, now: datetime) -> str:
    node, lost = node_of(pod), lost_at(pod)
    if not node:
        return ""
    if lost is None or now < lost:
        return f" on node {node}"
    # Kubernetes keeps such a pod until the node is back, gone, or tainted out-of-service.
    return f" on node {node}, which does not answer (is it down for good? taint it node.kubernetes.io/out-of-service),"
