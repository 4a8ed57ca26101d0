# SPDX-License-Identifier: Apache-2.0
"""What `dtjob explain` says of where a job's pods go, and whether they go there together."""

from collections.abc import Sequence

from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.objects import gangs, labels
from dtjob.objects.defaults import Defaults
from dtjob.objects.manifest import Manifest


def gang_objects(job: Job, pods: Sequence[Manifest], defaults: Defaults) -> list[Manifest]:
    """These pods as members of the job's gang, after its PodGroup; as they are where it has none."""
    group = gangs.pod_group(job, defaults)
    if group is None:
        return list(pods)
    evaluators = [one for one in pods if labels.of(one).get(labels.ROLE) == Role.EVALUATOR.value]
    members = (one if one in evaluators else gangs.joined(one, job, defaults) for one in pods)
    return [gangs.on_the_wire(group), *members]


def gang_lines(job: Job, defaults: Defaults) -> list[str]:
    """One line for each thing that holds for the job."""
    scheduling, provider, lines = job.spec.scheduling, gangs.provider_of(job, defaults), []
    if provider is not None:
        needed, count = gangs.min_available(job), len(gangs.members(job))
        volcano = scheduling.gang.volcano if scheduling.gang else None
        where = f" in queue {volcano.queue}" if volcano and volcano.queue else ""
        lines.append(f"  gang       {provider.value}{where}: {needed} of {count} pods are bound at once, or none")
    if scheduling.topology and scheduling.topology.required:
        lines.append(f"  topology   all pods that train on nodes of one {scheduling.topology.required}")
    if scheduling.topology and scheduling.topology.preferred:
        lines.append(
            f"  topology   pods that train on nodes of one {scheduling.topology.preferred}, where there is room"
        )
    if scheduling.priority_class_name:
        lines.append(f"  priority   {scheduling.priority_class_name}")
    return lines or ["  each pod is bound by itself, anywhere"]
