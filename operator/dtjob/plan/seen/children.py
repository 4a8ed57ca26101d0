# SPDX-License-Identifier: Apache-2.0
"""What is observed of one job: objects, reports, silent supervisors, Events of pods, and the state of each task.

A job of 4,000 pods is planned for at nearly every event of one of them. Most of the cost would be to walk through the
JSON of the others. So the facts that plans ask of a pod are read once, and kept beside it.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Internal
from dtjob.api.status.status import Status
from dtjob.api.status.workers import SCALED, ReplicaStatus, Resizing, Workers
from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.objects.topology import Task
from dtjob.plan.seen.workload import Kueue


@dataclass(frozen=True)
class Children:
    """Everything observed of one job.

    `objects` are all objects with the job's name label, strangers' included. `reports` are the supervisors' last
    `/status` by task id. `problems` has reasons: of objects that could not be made, by `Kind/name`, and of other calls
    that keep failing, in words.
    """

    objects: tuple[Manifest, ...] = ()
    reports: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    silences: "Mapping[str, Silence]" = field(default_factory=dict)
    """Supervisors that run and whose status cannot be read, by task id."""
    pod_event: "PodEvent | None" = None
    """What was read last of a pod's own events."""
    kueue: Kueue = Kueue.IGNORED
    """Whether there is Kueue in the cluster."""
    read: Mapping[tuple[str, str], Manifest | None] = field(default_factory=dict)
    """What the cluster was just asked for, by kind and name. None: there is none, or the pod of this name is not the
    job's."""

    def found(self, *keys: "Key") -> list[Manifest | None]:
        """The answers about these objects; None for one that is not there. Raises Unread for those not read yet."""
        if unread := [key for key in keys if key not in self.read]:
            raise Unread(unread)
        return [self.read[key] for key in keys]

    def unlisted(self, *kinds: str) -> list[Manifest]:
        """The objects of these kinds that were asked for and exist, but have lost the label by which dtjob watches."""
        found = (one for (kind, _), one in self.read.items() if kind in kinds and one is not None)
        return [one for one in found if labels.JOB_NAME not in labels.of(one)]

    def owned(self, job: Job, kinds: Container[str]) -> list[Manifest]:
        """The objects of these kinds that this very job controls; for pods there is `owned_pods`, which is quicker."""
        uid = job.metadata.uid
        return [one for one in self.objects if one["kind"] in kinds and labels.controller_uid(one) == uid]

    def owned_pods(self, job: Job) -> list[Manifest]:
        """The pods that this very job controls."""
        uid = job.metadata.uid
        return [one for one in self.objects if one["kind"] == "Pod" and facts_of(one).controller == uid]


class PodState(StrEnum):
    """What a task's current attempt is doing."""

    MISSING = "Missing"
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    LOST = "Lost"
    IGNORED = "Ignored"
    """The task has failed, and a rule says not to start it again."""


class TaskView(NamedTuple):
    """One task, its current attempt, and the pods that exist for it (of any attempt). `pod`: the current attempt's
    (None: there is none), in which `state`. `supervised`: the job has our supervisor in its pods."""

    task: Task
    attempt: int
    pods: tuple[Manifest, ...]
    pod: Manifest | None
    state: PodState
    supervised: bool = False

    @classmethod
    def of(
        cls,
        task: Task,
        attempt: int,
        pods: tuple[Manifest, ...],
        now: datetime,
        *,
        supervised: bool = False,
        finished: bool = False,
    ) -> "TaskView":
        """The task as it is at `now`. `finished`: the status says that this attempt ended well, wherever its pod is.
        That does not count if the pod is there and has not ended: somebody has forged it.

        It is the view of the last plan if there is one pod and nothing has changed.
        """
        finished = finished and all(ended(pod) for pod in pods if facts_of(pod).attempt == attempt)
        only = pods[0] if len(pods) == 1 and not finished and isinstance(pods[0], ObservedPod) else None
        known = only.view if only else None
        if isinstance(known, TaskView) and (known.attempt, known.supervised) == (attempt, supervised):
            return known
        pod = next((pod for pod in pods if facts_of(pod).attempt == attempt), None)
        if finished:
            state = PodState.SUCCEEDED
        else:
            state = PodState.MISSING if pod is None else state_of(pod, now, supervised=supervised)
        view = cls(task, attempt, pods, pod, state, supervised)
        if only and facts_of(only).lost_at is None:  # else time alone changes it
            only.view = view
        return view

    @property
    def evaluates(self) -> bool:
        """Whether this is the evaluator, without which training goes on."""
        return self.task.role is Role.EVALUATOR

    @property
    def up(self) -> bool:
        """Whether it counts as ready: it runs, or has done its part."""
        return self.state in (PodState.RUNNING, PodState.SUCCEEDED)


def view_tasks(job: Job, children: Children, memory: Internal, now: datetime) -> tuple[TaskView, ...]:
    """Every task of the job, at the attempts that are remembered, with its pods at `now`."""
    by_task: dict[str, tuple[Manifest, ...]] = {}
    for pod in children.owned_pods(job):
        if (id_ := facts_of(pod).task_id) is not None:
            by_task[id_] = (*by_task.get(id_, ()), pod)
    supervised, views = job.spec.program is not None, []
    for task in topology.tasks(job):
        attempt = memory.attempts.of(task.id)
        finished, pods = memory.finished.get(task.id) == attempt, by_task.get(task.id, ())
        views.append(TaskView.of(task, attempt, pods, now, supervised=supervised, finished=finished))
    return tuple(views)


def condition_of(pod: Manifest, type_: str) -> Mapping[str, Any]:
    """The pod's condition of this type, empty if it has none."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((one for one in conditions if one["type"] == type_), {})


def created_at(pod: Manifest) -> datetime:
    """When the API server took the pod in, by its clock."""
    return times.parse(pod["metadata"]["creationTimestamp"])


def ended_at(pod: Manifest) -> datetime | None:
    """When the training container ended, by its node's clock; None if it has not, or nobody saw it."""
    finished = (facts_of(pod).end or {}).get("finishedAt")
    return times.parse(finished) if finished else None


def ended(pod: Manifest) -> bool:
    """Whether nothing of this pod trains any more."""
    facts = facts_of(pod)
    return facts.end is not None or facts.is_terminal


def kept_by_sidecar(pod: Manifest) -> bool:
    """Whether training has ended in a pod of which another container still runs.

    For a moment the kubelet says that the containers have ended and not yet that the pod has: no sidecar keeps it then.
    """
    states = [one.get("state") or {} for one in (pod.get("status") or {}).get("containerStatuses") or ()]
    return ended(pod) and not facts_of(pod).is_terminal and any("running" in state for state in states)


def deleting(pod: Manifest) -> bool:
    """Whether somebody has deleted the pod, which may still be running its grace period."""
    return "deletionTimestamp" in pod["metadata"]


def is_of_data_worker(pod: Manifest) -> bool:
    """Whether the name of the pod says that it is a data worker's."""
    return (facts_of(pod).task_id or "").startswith(f"{Role.DATA.value}-")


def asked_to_go_at(pod: Manifest) -> datetime:
    """When a pod that is being deleted was asked to go."""
    grace = timedelta(seconds=pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    return times.parse(pod["metadata"]["deletionTimestamp"]) - grace


def is_lost(pod: Manifest, now: datetime) -> bool:
    """Whether the pod counts as lost with its node by now."""
    lost = facts_of(pod).lost_at
    return lost is not None and now >= lost


def node_of(pod: Manifest) -> str:
    """The name of the pod's node; empty if it has none yet."""
    return str((pod.get("spec") or {}).get("nodeName") or "")


def _was_told_to_end(pod: Manifest) -> bool:
    """Whether the pod was evicted or deleted. Its training container may have ended before that. Nobody can tell: each
    of the two times is of another clock."""
    disrupted = condition_of(pod, "DisruptionTarget").get("status") == "True"
    by_its_node = bool((pod.get("status") or {}).get("reason"))  # or by the pod's own deadline
    return disrupted or by_its_node or deleting(pod)


def state_of(pod: Manifest, now: datetime, *, supervised: bool = False) -> PodState:
    """The state of one pod at `now`.

    Our supervisor ends with 0 only if the program has finished, also when it was told to end meanwhile. Nobody knows
    that of any other image: many programs save and exit with 0 when they are told to end. If such a pod is deleted
    after its end, only the status knows that it has finished.
    """
    facts = facts_of(pod)
    if (end := facts.end) is not None:
        done = end.get("exitCode") == 0 and (supervised or not _was_told_to_end(pod))
        return PodState.SUCCEEDED if done else PodState.FAILED
    if facts.is_terminal:
        # Succeeded without the training container's end was never seen by a kubelet: do not call it success.
        return PodState.FAILED
    if is_lost(pod, now):
        return PodState.LOST
    return PodState.RUNNING if facts.runs and facts.phase == "Running" else PodState.PENDING


def attempts_of_pods(job: Job, children: Children) -> Attempts:
    """The attempts of the job's pods, for a job whose status has none. A task without a pod gets the newest of them, so
    that no earlier pod is taken for its own. No status remembers those of data workers."""
    pods, newest = children.owned_pods(job), dict[str, int]()
    if not any(facts_of(pod).attempt for pod in pods):  # nearly always, and this is asked at each look
        return Attempts()
    for pod in pods:
        facts = facts_of(pod)
        if facts.task_id is not None and facts.attempt is not None and not is_of_data_worker(pod):
            newest[facts.task_id] = max(facts.attempt, newest.get(facts.task_id, 0))
    return Attempts(exceptions=newest, others=max(newest.values())) if any(newest.values()) else Attempts()


def workers_of_lost_group(job: Job, children: Children) -> Workers | None:
    """The workers of an elastic job that has pods, and whose status does not say the size of their group.

    The spec may have changed since the group began, and some of its pods may be gone. Pods of two groups must not train
    together. So this group ends, and one of the size in the spec begins.
    """
    worker = job.spec.replica_specs.worker
    if job.spec.elastic_policy is None or worker is None:
        return None
    ids = [facts_of(pod).task_id or "" for pod in children.owned_pods(job)]
    connected = topology.CONNECTED_ROLES.get(job.spec.strategy, ())
    tasks = [(role, index) for role, _, index in (one.rpartition("-") for one in ids) if role in connected]
    if not tasks:
        return None
    seen = [int(index) + 1 for role, index in tasks if role == Role.WORKER and index.isdecimal()]
    change = Resizing(to=worker.replicas, reason=SCALED, message="status.workers was removed")
    return Workers(desired=worker.replicas, replicas=max((worker.replicas, *seen)), resizing=change)


@dataclass(frozen=True)
class Silence:
    """Since when the supervisor of one pod cannot be read, and how that shows."""

    pod_uid: str
    address: str
    """`host:port` at which it was asked."""
    since: datetime
    reason: str
    """One word for programs, such as `ConnectTimeout`."""
    message: str
    """What happened when it was asked last, in words."""


@dataclass(frozen=True)
class PodEvent:
    """The newest warning about a pod, as it was read at one moment; the text is empty if there is none."""

    pod_uid: str
    read_at: datetime
    text: str


Key = tuple[str, str]
"""Kind and name of an object."""


class Unread(Exception):
    """The plan depends on these `objects`, by kind and name, that were not read.

    Who plans reads them, adds the answers to the children, and plans again.
    """

    def __init__(self, objects: Iterable[Key]) -> None:
        self.objects = tuple(objects)
        super().__init__(f"not read yet: {', '.join(map('/'.join, self.objects))}")


COUNTED_AS = {
    PodState.RUNNING: "active",
    PodState.PENDING: "pending",
    PodState.SUCCEEDED: "succeeded",
    PodState.FAILED: "failed",
    PodState.LOST: "failed",
    PodState.IGNORED: "failed",
}
"""Names of the counts in `replicaStatuses`."""


def count_tasks(status: Status, views: Iterable[TaskView]) -> Status:
    """Write how many tasks are up, the tasks by role and state, and which have done their part."""
    views = tuple(views)
    ready = f"{sum(view.up for view in views)}/{len(views)}"
    done = {view.task.id: view.attempt for view in views if view.state is PodState.SUCCEEDED}
    status = status.but(ready=ready, replica_statuses=replica_statuses(views))
    return status if done == status.internal.finished else status.remembering(finished=done)


def replica_statuses(views: Iterable[TaskView]) -> dict[str, ReplicaStatus]:
    """Tasks by role and state."""
    counts: dict[str, dict[str, int]] = {}
    for (role, state), number in Counter((view.task.role, view.state) for view in views).items():
        counted = counts.setdefault(role.value, {"replicas": 0})
        counted["replicas"] += number
        if name := COUNTED_AS.get(state):
            counted[name] = counted.get(name, 0) + number
    return {role: ReplicaStatus(**counted) for role, counted in counts.items()}


LOST_AFTER = timedelta(seconds=15)
"""A pod that is still there this long after its grace period ended is on a node that is gone. The operator's clock may
be this much ahead of the API server's: no pod counts as lost within its grace period."""

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
