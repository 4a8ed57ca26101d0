# SPDX-License-Identifier: Apache-2.0
"""runPolicy.schedulingPolicy of a TFJob as `scheduling`."""

from collections.abc import Sequence

from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.scheduling import GangProvider
from dtjob.cli.convert.reading import Fields, Findings
from dtjob.cli.convert.roles import Replicas, members
from dtjob.objects.gangs import VOLCANO_SCHEDULER

PATH = "spec.runPolicy.schedulingPolicy"
_OF_GANGS = ("minAvailable", "queue", "scheduleTimeoutSeconds")
_COSCHEDULING = "scheduler-plugins"


def scheduling(policy: Fields, replicas: Replicas, said: Findings) -> Fields:
    """The block `scheduling`, empty if nothing is left of it."""
    found: Fields = {}
    if "minResources" in policy:
        said.warn(f"{PATH}.minResources", "a gang asks for the requests of its pods; it is left out")
    pods = [replica.template.pod for replica in replicas.values()]
    if policy.get("priorityClass"):
        found |= _priority(policy["priorityClass"], pods, said)
    if any(policy.get(name) not in (None, "") for name in _OF_GANGS):
        if members(replicas) > 1:
            return {**found, "gang": _gang(policy, replicas, pods, said)}
        for name in filter(policy.__contains__, _OF_GANGS):
            said.warn(f"{PATH}.{name}", "only one pod trains, which needs no gang; it is left out")
    return found


def _priority(name: str, pods: Sequence[Fields], said: Findings) -> Fields:
    """The PriorityClass. Where a template has its own, that one stays, and the others get this one."""
    path = f"{PATH}.priorityClass"
    if not any("priorityClassName" in pod for pod in pods):
        said.note(path, "dtjob gives it to the pods; TFJob gives it to the PodGroup alone")
        return {"priorityClassName": name}
    if any(pod.get("priorityClassName", name) != name for pod in pods):
        said.warn(path, "templates have a priorityClassName of their own, which counts for their pods")
    for pod in pods:
        pod.setdefault("priorityClassName", name)
    return {}


def _gang(policy: Fields, replicas: Replicas, pods: Sequence[Fields], said: Findings) -> Fields:
    provider, queue, seconds = _provider(policy, pods), policy.get("queue"), policy.get("scheduleTimeoutSeconds")
    gang: Fields = {} if provider is None else {"provider": provider.value}
    if queue and provider is GangProvider.VOLCANO:
        gang["volcano"] = {"queue": queue}
        said.note(f"{PATH}.queue", "a queue of Volcano; for a queue of Kueue, write its label instead")
    elif queue:
        said.warn(f"{PATH}.queue", "only Volcano has queues, and the pods name another scheduler; it is left out")
    _warn_of_min_available(policy.get("minAvailable"), replicas, said)
    if seconds is not None and provider is GangProvider.COSCHEDULING:
        gang["coscheduling"] = {"scheduleTimeoutSeconds": seconds}
    elif seconds is not None:
        said.warn(
            f"{PATH}.scheduleTimeoutSeconds",
            "only Coscheduling has it; it is left out. To fail a job that does not start, write startDeadlineSeconds",
        )
    if provider is None:
        said.warn(
            PATH,
            "TFJob forms a gang if its operator has --gang-scheduler-name; dtjob forms one with the default provider "
            "of its operator. To choose, write scheduling.gang.provider",
        )
    return gang


def _provider(policy: Fields, pods: Sequence[Fields]) -> GangProvider | None:
    """The scheduler that the pods name, else the only one that has such a field."""
    schedulers = {pod["schedulerName"] for pod in pods if pod.get("schedulerName")}
    if VOLCANO_SCHEDULER in schedulers:
        return GangProvider.VOLCANO
    if any(name.startswith(_COSCHEDULING) for name in schedulers):
        return GangProvider.COSCHEDULING
    if policy.get("queue"):
        return GangProvider.VOLCANO
    return GangProvider.COSCHEDULING if "scheduleTimeoutSeconds" in policy else None


def _warn_of_min_available(wanted: int | None, replicas: Replicas, said: Findings) -> None:
    """minAvailable, which dtjob does not have: its gang is all pods that train."""
    path, count = f"{PATH}.minAvailable", members(replicas)
    if wanted is None or wanted == count:
        return
    if wanted < 1:
        said.warn(path, "must be at least 1; it is left out, so all pods are waited for")
    elif wanted < count:
        elastic = "; to start with fewer workers, write elasticPolicy.minReplicas" if Role.WORKER in replicas else ""
        said.warn(path, f"training begins when all pods run, so the gang waits for each of them{elastic}")
    elif Role.EVALUATOR in replicas:
        said.note(path, "the evaluator is not part of a gang of dtjob, so all others are waited for")
    else:
        said.warn(path, f"is more than the {count} pods, so the TFJob never started; left out")
