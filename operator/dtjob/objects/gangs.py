# SPDX-License-Identifier: Apache-2.0
"""Gangs: the PodGroup of each provider, and what makes a pod a member of it.

A PodGroup's `kind` carries its group here, as kubectl takes it (`PodGroup.scheduling.volcano.sh`), because three APIs
have a kind of that name. `on_the_wire` takes it off again, and `kube/` finds the version that the cluster has.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.scheduling import GangProvider
from dtjob.objects import labels, quantities, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults, priority_class_of
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod
from dtjob.objects.shared import owned_metadata
from dtjob.objects.topology import Task

POD_GROUP = "PodGroup"
PLURAL = "podgroups"
KINDS = {
    GangProvider.KUBERNETES: f"{POD_GROUP}.scheduling.k8s.io",
    GangProvider.VOLCANO: f"{POD_GROUP}.scheduling.volcano.sh",
    GangProvider.COSCHEDULING: f"{POD_GROUP}.scheduling.x-k8s.io",
}
"""Provider to its PodGroup's kind, as it is called here."""
PROVIDERS = {kind: provider for provider, kind in KINDS.items()}
VERSIONS = {
    KINDS[GangProvider.KUBERNETES]: "scheduling.k8s.io/v1beta1",
    KINDS[GangProvider.VOLCANO]: "scheduling.volcano.sh/v1beta1",
    KINDS[GangProvider.COSCHEDULING]: "scheduling.x-k8s.io/v1alpha1",
}
"""The API version of each kind."""

STATUS_FIELD = "gang"
"""Where the job's status keeps which provider it began with, so that a later default never reaches a running job."""
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
VOLCANO_SCHEDULER = "volcano"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"


def is_pod_group(kind: str) -> bool:
    """Whether an object of this kind is a PodGroup, of any provider."""
    return kind in PROVIDERS


def on_the_wire(manifest: Any) -> Any:
    """The object as an API server wants it: a PodGroup's kind without its group."""
    if isinstance(manifest, dict) and is_pod_group(str(manifest.get("kind"))):
        return {**manifest, "kind": POD_GROUP}
    return manifest


def provider_of(job: Job, defaults: Defaults) -> GangProvider | None:
    """Whose gang the job is: as it says, else as it began, else today's default; None: it has none."""
    if job.spec.scheduling.gang is None:
        return None
    began = (job.status.get(STATUS_FIELD) or {}).get("provider")
    if job.spec.scheduling.gang.provider is None and began in list(GangProvider):
        return GangProvider(began)
    return job.spec.scheduling.gang.provider or defaults.gang_provider


def members(job: Job) -> list[Task]:
    """The tasks in the gang. The evaluator is not in it, because it goes to the chief's node. Its affinity to a pod
    that is not bound yet would keep the whole gang from ever being bound."""
    return [task for task in topology.tasks(job) if task.role is not Role.EVALUATOR]


def min_available(job: Job) -> int:
    """How many pods there must be room for at once: all that train; of elastic workers, their least.

    No strategy makes a first step before all its tasks are up (`dtjob_trainer/rendezvous/rendezvous.py`), so a job
    cannot ask for fewer.
    """
    counts = topology.counts(job)
    return sum(topology.min_count(job, role) or count for role, count in counts if role is not Role.EVALUATOR)


def joined(manifest: Manifest, job: Job, defaults: Defaults, *, alone: bool = False) -> Manifest:
    """A pod that trains as a member of the job's gang, if it has one. A scheduler that its template names stays.
    `alone`: it goes to the gang's scheduler, but is not in its PodGroup."""
    provider, gang = provider_of(job, defaults), job.spec.scheduling.gang
    if provider is None or gang is None:
        return manifest
    spec, metadata, group = dict(manifest["spec"]), dict(manifest["metadata"]), job.metadata.name
    annotations: dict[str, str] = dict(metadata.get("annotations") or {})
    if provider is GangProvider.KUBERNETES and not alone:
        spec["schedulingGroup"] = {"podGroupName": group}
    if provider is GangProvider.VOLCANO:
        spec.setdefault("schedulerName", VOLCANO_SCHEDULER)
        annotations |= {VOLCANO_QUEUE: gang.volcano.queue} if gang.volcano and gang.volcano.queue else {}
        annotations |= {} if alone else {VOLCANO_GROUP: group}
    if provider is GangProvider.COSCHEDULING:
        spec.setdefault("schedulerName", defaults.coscheduling_scheduler)
        metadata |= {} if alone else {"labels": {**labels.of(manifest), COSCHEDULING_GROUP: group}}
    if annotations:
        metadata["annotations"] = annotations
    return {**manifest, "metadata": metadata, "spec": spec}


def pod_group(job: Job, defaults: Defaults = NO_DEFAULTS, at_most: int | None = None) -> Manifest | None:
    """The job's PodGroup, None if it has no gang. `at_most`: how many tasks are still to run, so that a gang does
    not wait for what has finished."""
    provider, gang = provider_of(job, defaults), job.spec.scheduling.gang
    if provider is None or gang is None:
        return None
    needed = min_available(job)
    if at_most is not None:
        needed = max(1, min(needed, at_most))
    made: Manifest = {"apiVersion": VERSIONS[KINDS[provider]], "kind": KINDS[provider]}
    made["metadata"] = owned_metadata(job, job.metadata.name)
    priority = priority_class_of(job, defaults)
    named = {"priorityClassName": priority} if priority else {}
    if provider is GangProvider.KUBERNETES:
        return {**made, "spec": {"schedulingPolicy": {"gang": {"minCount": needed}}, **named}}
    if provider is GangProvider.COSCHEDULING:
        timeout = gang.coscheduling.model_dump(by_alias=True, exclude_none=True) if gang.coscheduling else {}
        return {**made, "spec": {"minMember": needed, **timeout}}
    queue = gang.volcano.queue if gang.volcano else None
    spec: dict[str, Any] = {"minMember": needed, "queue": queue or "default", **named}
    if least := _least(job, defaults, needed):
        spec["minResources"] = least
    return {**made, "spec": spec}


def _least(job: Job, defaults: Defaults, needed: int) -> dict[str, str]:
    """What the first so many members ask for together. Tasks of one role ask for the same.

    Empty where one asks for what is no quantity: the API server refuses the pods, and says which field it is.
    """
    counts = Counter(task.role for task in members(job)[:needed])
    specs = ((pod(job, Task(role, 0), 0, defaults)["spec"], count) for role, count in counts.items())
    try:
        least = quantities.added(quantities.times(quantities.requests_of(spec), count) for spec, count in specs)
    except ValueError:
        return {}
    return {name: quantities.text(amount) for name, amount in least.items()}


def drifted(wanted: Manifest, there: Manifest) -> str:
    """The first field of a PodGroup that is not as in `wanted`; empty if all are."""
    spec = there.get("spec") or {}
    return next((f"spec.{name}" for name, value in _changeable(wanted).items() if spec.get(name) != value), "")


def repaired(wanted: Manifest, there: Manifest) -> Manifest:
    """The PodGroup that is there, with all that dtjob says of it; others' fields stay."""
    return {**there, "spec": {**(there.get("spec") or {}), **_changeable(wanted)}}


def _changeable(wanted: Manifest) -> dict[str, Any]:
    """What of a PodGroup an API server lets change: of Kubernetes' own the policy only."""
    fixed = ("priorityClassName",) if wanted["kind"] == KINDS[GangProvider.KUBERNETES] else ()
    return {name: value for name, value in wanted["spec"].items() if name not in fixed}


def lost_group(wanted: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether an API server has dropped a pod's membership: one without the feature gate does so silently."""
    return "schedulingGroup" in wanted["spec"] and not stored["spec"].get("schedulingGroup")
