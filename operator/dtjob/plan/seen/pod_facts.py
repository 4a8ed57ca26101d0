# SPDX-License-Identifier: Apache-2.0
"""Facts of a pod: what plans ask of it, read when the pod is first looked at, and kept beside it.

A job of 4,000 pods is planned for at nearly every event of one of them. Most of the cost would be to walk through the
JSON of the others. All facts depend on the pod alone and not on the time.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest

LOST_AFTER = timedelta(seconds=15)
"""A pod that is still there this long after its grace period ended is on a node that is gone."""

POD_ENDED = ("Failed", "Succeeded")
"""A pod's own phases when all of its containers have ended."""


@dataclass(frozen=True, slots=True)
class PodFacts:
    """Read out of one pod."""

    controller: str | None
    """The uid of what controls it."""
    task_id: str | None
    """The task that its name says it is an attempt at, None if it says none. Not its labels: whoever may edit the
    pod can change those."""
    attempt: int | None
    """Which attempt its name says it is, None if it says none."""
    phase: str | None
    container: dict[str, Any]
    """The status of the training container, empty before the kubelet wrote one."""
    end: dict[str, Any] | None
    """How the training container ended, None if it has not. It decides, not the pod: a sidecar keeps a pod
    Running."""
    runs: bool
    """Whether the training container runs."""
    waits: bool
    """Whether any container waits for something, or the pod for a node."""
    lost_at: datetime | None
    """When it counts as lost with its node, None if it is not being deleted or has ended."""

    @property
    def is_terminal(self) -> bool:
        """Whether all of the pod's containers have ended, sidecars too: only then do EndpointSlices drop its host
        name."""
        return self.phase in POD_ENDED

    @classmethod
    def read(cls, pod: Manifest) -> "PodFacts":
        """The facts of a pod as an API server gives it."""
        metadata, status = pod["metadata"], pod.get("status") or {}
        containers = status.get("containerStatuses") or ()
        container: dict[str, Any] = next((one for one in containers if one["name"] == TRAINING_CONTAINER), {})
        state = container.get("state") or {}
        end, phase = state.get("terminated"), status.get("phase")
        going = "deletionTimestamp" in metadata and end is None and phase not in POD_ENDED
        job = labels.controlling_job(pod)
        task_id, attempt = topology.named_attempt(job, metadata["name"]) if job else (None, None)
        return cls(
            controller=labels.controller_uid(pod),
            task_id=task_id,
            attempt=attempt,
            phase=phase,
            container=container,
            end=end,
            runs="running" in state,
            waits=_waits(status),
            lost_at=times.parse(metadata["deletionTimestamp"]) + LOST_AFTER if going else None,
        )


def _waits(status: dict[str, Any]) -> bool:
    containers = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    if any((one.get("state") or {}).get("waiting") for one in containers):
        return True
    conditions = status.get("conditions") or ()
    return any(one["type"] == "PodScheduled" and one["status"] == "False" for one in conditions)


class ObservedPod(Manifest):
    """A pod as it was seen at one moment. Nobody changes it; so what was read out of it is kept beside it.

    A copy is a plain manifest, which may be changed.
    """

    __slots__ = ("facts", "view")

    def __init__(self, pod: Manifest) -> None:
        super().__init__(pod)
        self.facts: PodFacts | None = None
        self.view: object = None
        """The view of its task, where that has this pod only: `TaskView.of` keeps it here. The store lets go of it when
        there is a newer version, or none: each holds the other, and garbage is looked for seldom."""

    def __reduce__(self) -> tuple[type[Manifest], tuple[Manifest]]:
        return dict, (dict(self),)


def facts_of(pod: Manifest) -> PodFacts:
    """The facts of a pod; of an observed one they are read once."""
    if type(pod) is not ObservedPod:
        return PodFacts.read(pod)
    if pod.facts is None:
        pod.facts = PodFacts.read(pod)
    return pod.facts
