# SPDX-License-Identifier: Apache-2.0
"""A job's tasks: their names, hosts and TF_CONFIG. Everything here depends on the manifest alone."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.checkpoint import MountOn
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.objects.manifest import Manifest

CONNECTED_ROLES = {
    Strategy.MULTI_WORKER_MIRRORED: (Role.CHIEF, Role.WORKER),
    Strategy.PARAMETER_SERVER: (Role.CHIEF, Role.WORKER, Role.PS),
}
"""The roles whose tasks a strategy connects with each other; under the others one process trains alone. The evaluator
is never among them: ParameterServer hangs with it inside its cluster (TensorFlow 2.21)."""


@dataclass(frozen=True)
class Task:
    """One member of a job."""

    role: Role
    index: int

    @cached_property
    def id(self) -> str:
        """Role and index, such as `worker-1`."""
        return f"{self.role.value}-{self.index}"


def tasks(job: Job) -> list[Task]:
    """Every task of the job but the data workers, the one that writes checkpoints first and the evaluator last."""
    return list(_tasks(counts(job)))


def counts(job: Job) -> tuple[tuple[Role, int], ...]:
    """The roles that the job has, each with the number of its tasks, without the data workers."""
    found = ((role, job.spec.replica_specs.get(role)) for role in Role if role is not Role.DATA)
    return tuple((role, replica.replicas) for role, replica in found if replica)


def data_tasks(job: Job) -> list[Task]:
    """The data workers. They are no tasks of the training: none has to run, and their number may change."""
    data = job.spec.replica_specs.data
    return [Task(Role.DATA, index) for index in range(data.replicas if data else 0)]


def all_tasks(job: Job) -> list[Task]:
    """Whatever has pods: every task, and then the data workers."""
    return [*tasks(job), *data_tasks(job)]


@lru_cache(maxsize=32)
def _tasks(counts: tuple[tuple[Role, int], ...]) -> tuple[Task, ...]:
    """Each plan asks for them, and thousands of them take longer to make than all else that it does. Few are kept: a
    job of 8,000 tasks takes 2 MB, also while it is suspended."""
    return tuple(Task(role, index) for role, count in counts for index in range(count))


def min_count(job: Job, role: Role) -> int | None:
    """With how few of its tasks a role can begin; None if it needs all of them."""
    replica, policy = job.spec.replica_specs.get(role), job.spec.elastic_policy
    if role is not Role.WORKER or replica is None or policy is None or policy.min_replicas is None:
        return None
    return policy.min_replicas if policy.min_replicas < replica.replicas else None


def chief_task(job: Job) -> Task:
    """The task that writes checkpoints and decides success: the chief, or worker 0 if there is none."""
    return Task(Role.CHIEF if job.spec.replica_specs.chief else Role.WORKER, 0)


def connected(job: Job, task: Task) -> bool:
    """Whether the strategy connects the task with others; an evaluator stands alone, as does a job of one process."""
    return task.role in CONNECTED_ROLES.get(job.spec.strategy, ())


def evaluator_follows_chief(job: Job) -> bool:
    """Whether the evaluator must run on the chief's node, since a ReadWriteOnce volume is attached to one node."""
    storage = job.spec.checkpoint.storage if job.spec.checkpoint else None
    return storage is not None and storage.uri is None and storage.mount_on is MountOn.CHIEF


def hostname(job: Job, task: Task) -> str:
    """The task's host name, the same in every attempt so that TF_CONFIG never changes."""
    return f"{job.metadata.name}-{task.id}"


def pod_name(job: Job, task: Task, attempt: int) -> str:
    """The pod's name; each attempt has its own, so that a pod stuck on a lost node never blocks its successor."""
    return f"{hostname(job, task)}-{attempt}"


def named_attempt(job_name: str, pod_name: str) -> tuple[str, int] | tuple[None, None]:
    """The id of the task, and the attempt at it, that a pod of this name is in this job. None if it has no such
    name."""
    before, _, attempt = pod_name.rpartition("-")
    prefix = job_name + "-"
    if not (attempt.isascii() and attempt.isdecimal() and before.startswith(prefix)):
        return None, None
    return before[len(prefix) :], int(attempt)


def attempt_of(pod: Manifest) -> int:
    """Which attempt at its task a pod of ours is, by its name; raises ValueError on a pod of another name."""
    return int(pod["metadata"]["name"].rpartition("-")[2])


def address(job: Job, task: Task, port: int) -> str:
    """`host:port` of a task inside the job's namespace (the host resolves through the job's headless Service)."""
    return f"{hostname(job, task)}.{job.metadata.name}:{port}"


def cluster_spec(job: Job) -> dict[str, list[str]]:
    """TensorFlow's cluster spec: role to addresses."""
    roles = CONNECTED_ROLES.get(job.spec.strategy, (Role.CHIEF,))
    spec: dict[str, list[str]] = {}
    for task in tasks(job):
        if task.role in roles:
            spec.setdefault(task.role.value, []).append(address(job, task, job.spec.network.port))
    return spec


def cluster_json(job: Job) -> str:
    """The cluster spec as it is in the ConfigMap: compact, since TF_CONFIG must fit one environment string."""
    return json.dumps(cluster_spec(job), separators=(",", ":"))


def cluster_hash(job: Job) -> str:
    """Ten hex digits of the cluster spec's SHA-256: only tasks with the same one may train together."""
    shape = (job.metadata.name, job.spec.strategy, job.spec.network.port, counts(job))
    if shape not in _hashes:
        if len(_hashes) >= HASHES_KEPT:
            _hashes.clear()
        _hashes[shape] = hashlib.sha256(cluster_json(job).encode()).hexdigest()[:10]
    return _hashes[shape]


HASHES_KEPT = 10_000
# All that the cluster spec depends on, to its hash: each of N pods asks for the hash of a text of N addresses.
_hashes: dict[tuple[str, Strategy, int, tuple[tuple[Role, int], ...]], str] = {}


def tf_config(cluster: dict[str, list[str]], task: Task) -> dict[str, Any]:
    """The TF_CONFIG that the task sees, with this cluster spec of its job."""
    return {"cluster": cluster, "task": {"type": task.role.value, "index": task.index}}
