# SPDX-License-Identifier: Apache-2.0
"""Small builders for jobs, their pods and the states that a kubelet writes. Times are those of the tests' own clock."""

import itertools
import json
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dtjob import times
from dtjob.api.job import Job
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.attempts import Attempts
from dtjob.api.status.internal import Incident, Internal
from dtjob.api.status.status import Status
from dtjob.objects import drift, labels, topology
from dtjob.objects.defaults import NO_DEFAULTS, Defaults
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod as pod_of
from dtjob.objects.topology import Task
from dtjob.plan.actions import Create, Delete, Plan, Repair, StopServing
from dtjob.plan.plan import plan
from dtjob.plan.record.failure import Cause
from dtjob.plan.seen.children import Children, TaskView, Unread, view_tasks
from dtjob.plan.seen.situation import Draft, Situation

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
JOB_UID = "11111111-2222-3333-4444-555555555555"
CLAIM_TEMPLATE = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}}
_numbers = itertools.count(1)


def at(seconds: float) -> datetime:
    """So many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def job(
    strategy: str = "MultiWorkerMirrored",
    *,
    workers: int = 2,
    chief: bool = True,
    ps: int = 0,
    evaluator: bool = False,
    program: bool | dict[str, Any] = True,
    status: dict[str, Any] | None = None,
    name: str = "digits",
    uid: str = JOB_UID,
    **spec: Any,
) -> Job:
    """A job. Roles with a count of 0 are left out, and single-pod strategies have no workers; `spec` adds blocks."""
    single = strategy not in ("MultiWorkerMirrored", "ParameterServer")
    counts = {"chief": int(chief), "worker": 0 if single else workers, "ps": ps, "evaluator": int(evaluator)}
    base: dict[str, Any] = {
        "strategy": strategy,
        "image": "dtjob-trainer:dev",
        "replicaSpecs": {
            role: {"replicas": count} if role in ("worker", "ps") else {} for role, count in counts.items() if count
        },
    }
    if program:
        base["program"] = {"entrypoint": "examples/digits.py"} if program is True else program
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "1", "generation": 1}
    return Job.model_validate({"metadata": metadata, "spec": {**base, **spec}, "status": status or {}})


def claim_job(retention: str | None = None, **fields: Any) -> Job:
    """A job that brings the claim of its checkpoints; `fields` are more of its storage."""
    kept = {"retention": retention} if retention else {}
    return job(checkpoint={"storage": {"volumeClaimTemplate": CLAIM_TEMPLATE, **kept, **fields}})


def with_status(job: Job, status: dict[str, Any]) -> Job:
    """The job with another status."""
    return job.model_copy(update={"status": deepcopy(status)})


def task(id_: str) -> Task:
    """The task with this id, such as `worker-1`."""
    role, index = id_.rsplit("-", 1)
    return Task(Role(role), int(index))


def stored(manifest: Manifest, created: datetime = NOW) -> Manifest:
    """The object as an API server returns it: with uid, version and time of creation."""
    number = next(_numbers)
    stored = deepcopy(manifest)
    stored["metadata"] |= {
        "uid": f"uid-{number}",
        "resourceVersion": str(1000 + number),
        "creationTimestamp": times.rfc3339(created),
    }
    return stored


def pod(
    job: Job, task_id: str, status: dict[str, Any] | None = None, *, attempt: int = 0, created: datetime = NOW
) -> Manifest:
    """A stored pod of one attempt."""
    made = stored(pod_of(job, task(task_id), attempt), created)
    if status is not None:
        made["status"] = status
        made["spec"]["nodeName"] = "node-1"
    return made


def stranger(kind: str, name: str, job_name: str = "digits") -> Manifest:
    """Somebody else's object of a name that the job wants, with the job's label but no owner."""
    metadata = {"name": name, "namespace": "default", "labels": {labels.JOB_NAME: job_name}}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def deleting(pod: Manifest, since: datetime = NOW, grace: float = 30) -> Manifest:
    """The pod after a deletion was asked for: deletionTimestamp is when its grace period ends."""
    changed = deepcopy(pod)
    changed["metadata"]["deletionTimestamp"] = times.rfc3339(since + timedelta(seconds=grace))
    changed["metadata"]["deletionGracePeriodSeconds"] = grace
    return changed


def _status(phase: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"phase": phase, "containerStatuses": [{"name": "tensorflow", "state": state}], **more}


def running() -> dict[str, Any]:
    """The training container runs."""
    return _status("Running", {"running": {"startedAt": times.rfc3339(NOW)}})


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    """The training container waits, such as for its image."""
    return _status("Pending", {"waiting": {"reason": reason, "message": message}})


def unschedulable(message: str = "0/3 nodes are available") -> dict[str, Any]:
    """No node takes the pod."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def ended(code: int = 0, when: datetime = NOW, **terminated: Any) -> dict[str, Any]:
    """The training container ended; `terminated` adds reason, signal, message, …"""
    end = {"exitCode": code, "finishedAt": times.rfc3339(when), **terminated}
    return _status("Succeeded" if code == 0 else "Failed", {"terminated": end})


def last_line(
    code: int = 1,
    exception: str = "",
    *,
    stepped: bool | None = False,
    step: int | None = None,
    location: str = "",
    **flags: bool,
) -> str:
    """A container's last log lines, the supervisor's own at their end. `flags`: what is true of the exception, such as
    `transient` (contract.md)."""
    facts: dict[str, Any] = {} if step is None else {"step": step}
    facts |= {"message": f"the training process ended with exit code {code}: ending with {code}", "exitCode": code}
    facts |= {} if stepped is None else {"stepped": stepped}
    facts |= {"exception": exception} if exception else {}
    facts |= {"location": location} if location else {}
    facts |= {name: True for name, is_so in flags.items() if is_so}
    pairs = " ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in facts.items())
    line = f"time=2026-11-21T10:00:00.000Z level=error task=chief-0 {pairs}"
    return f"Traceback (most recent call last):\n{exception}\n{line}"


def failed(code: int = 1, exception: str = "", when: datetime = NOW, **told: Any) -> dict[str, Any]:
    """The training process failed, and its supervisor told so; `told` as `last_line` takes it."""
    return ended(code, when, message=last_line(code, exception, **told))


def stalled(
    straggler: str, behind: str = "in its data function", *, step: int = 120, when: datetime = NOW
) -> dict[str, Any]:
    """The supervisor has ended its container, as training had stalled over `straggler`."""
    how = f"stalled: no new step for 600 s; {straggler} is behind: {behind}: ending with 77"
    line = (
        f"time=2026-11-21T10:00:00.000Z level=error task=worker-1 step={step} message={json.dumps(how)} exitCode=77 "
        f'stepped=true straggler="{straggler}" behind={json.dumps(behind)}'
    )
    stack = 'Current thread 0x1 (most recent call first):\n  File "digits.py", line 7 in examples'
    return ended(77, when, reason="Error", message=f"{stack}\n{line}")


def out_of_memory(when: datetime = NOW) -> dict[str, Any]:
    """The kernel killed the training container."""
    return ended(137, when, reason="OOMKilled")


def disrupted(reason: str = "EvictionByEvictionAPI", when: datetime = NOW) -> dict[str, Any]:
    """The pod was evicted through the API, preempted or drained: the container got SIGTERM."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    return {**ended(143, when), "conditions": [condition]}


def evicted(reason: str = "Evicted", message: str = "The node was low on resource: memory. ") -> dict[str, Any]:
    """The kubelet took the pod down and left no container status (node pressure, node shutdown, storage limits)."""
    return {"phase": "Failed", "reason": reason, "message": message}


def rejected(reason: str = "OutOfcpu") -> dict[str, Any]:
    """The kubelet never started the pod."""
    return {"phase": "Failed", "reason": reason, "message": "Node didn't have enough resource: cpu"}


def views(job: Job, *pods: Manifest, now: datetime = NOW) -> tuple[TaskView, ...]:
    """The job's tasks with these pods, at the attempts of its status."""
    return view_tasks(job, Children(tuple(pods)), Status.read(job.status).internal, now)


def draft(job: Job, *pods: Manifest, now: datetime = NOW, **status: Any) -> Draft:
    """A draft of the plan for this job with these pods; `status` fields replace those of its status."""
    return Draft(situation(job, *pods, now=now, **status))


def situation(job: Job, *pods: Manifest, now: datetime = NOW, **status: Any) -> Situation:
    """The job with these pods; `status` are fields of its status or of `internal`, which is read beforehand."""
    seen = Situation.of(job, Children(tuple(pods)), now)
    return seen.with_status(changed(seen.status, **status))


def changed(status: Status, **changes: Any) -> Status:
    """The status with these fields of it, or of `internal`, changed."""
    remembered = {name: changes.pop(name) for name in Internal.model_fields if name in changes and name != "goodput"}
    return status.but(**changes).remembering(**remembered)


def remembered(attempts: dict[str, int] | None = None, incident: Incident | None = None, **more: Any) -> dict[str, Any]:
    """A stored status whose `internal` has these attempts, this incident and more of its fields."""
    kept = {**({"attempts": {"exceptions": attempts}} if attempts else {}), **more}
    return {"internal": {**kept, **({"incident": incident.to_json()} if incident else {})}}


def incident(seconds: float = 0, cause: str = Cause.ERROR, **more: Any) -> Incident:
    """An incident that began then, was charged, and waits for nothing."""
    fields = {"charged": 1, "in_a_row": 1, "attempts": Attempts(), "not_before": at(seconds), **more}
    return Incident(started_at=at(seconds), cause=cause, **fields)


def forgotten(job: Job) -> Job:
    """The job whose status has lost what the operator remembers in `internal`."""
    return with_status(job, {name: value for name, value in job.status.items() if name != "internal"})


def suspending(job: Job, value: bool = True) -> Job:
    """The job whose user has set spec.suspend."""
    return job.model_copy(update={"spec": job.spec.model_copy(update={"suspend": value})})


def condition(
    type_: str, status: str = "True", *, reason: str = "Said", message: str = "", since: datetime = NOW
) -> Any:
    """A condition as it is stored."""
    said = {"type": type_, "status": status, "reason": reason, "message": message}
    return {**said, "lastTransitionTime": times.rfc3339(since)}


def at_attempts(attempts: dict[str, int], **status: Any) -> dict[str, Any]:
    """A stored status with these attempts and more fields."""
    return {**status, "internal": {**status.get("internal", {}), "attempts": {"exceptions": attempts}}}


def all_pods(job: Job, status: dict[str, Any] | None = None, **states: dict[str, Any] | None) -> dict[str, Manifest]:
    """A pod for every task, in the same state (running), by task id. `states`: those of single tasks, such as
    `worker_1`; None: the task has no pod."""
    attempts = Status.read(job.status).internal.attempts
    ids = [one.id for one in topology.tasks(job)]
    each: dict[str, dict[str, Any] | None] = dict.fromkeys(ids, running() if status is None else status)
    each |= {name.replace("_", "-"): state for name, state in states.items()}
    there = {id_: state for id_, state in each.items() if state is not None}
    return {id_: pod(job, id_, deepcopy(state), attempt=attempts.of(id_)) for id_, state in there.items()}


def plan_answered(job: Job, children: Children, now: datetime = NOW, defaults: Defaults = NO_DEFAULTS) -> Plan:
    """The plan, where the API server knows no more pods and ConfigMaps than the store."""
    while True:
        try:
            return plan(job, children, now, defaults)
        except Unread as unread:
            known = {(one["kind"], one["metadata"]["name"]): one for one in children.objects if one["kind"] != "Pod"}
            read = {key: known.get(key) for key in unread.objects}
            children = replace(children, read={**children.read, **read})


def looked(job: Job, children: Children, now: datetime = NOW) -> tuple[Job, Plan]:
    """The job with the status that one plan gives it, and the plan."""
    made = plan_answered(job, children, now)
    return with_status(job, made.status or job.status), made


def chief_says(job: Job, report: dict[str, Any], seconds: float = 0) -> tuple[Job, Plan]:
    """`looked` where all pods run, and the chief's supervisor reports this."""
    return looked(job, Children(tuple(all_pods(job).values()), {"chief-0": report}), at(seconds))


def in_words(actions: Iterable[object]) -> list[str]:
    """What is asked for of objects: a verb and a name."""
    words = {Create: "create", Delete: "delete", Repair: "repair", StopServing: "unserve"}
    return [f"{words[type(one)]} {getattr(one, 'name', '')}" for one in actions]


def pods_made(made: Plan) -> list[str]:
    """The names of the pods that a plan makes."""
    return [one.name for one in made.actions if isinstance(one, Create) and one.kind == "Pod"]


def not_there(children: Children, *pods: str) -> Children:
    """The same, where the API server was asked for these pods and has none of them."""
    return replace(children, read={**children.read, **{("Pod", name): None for name in pods}})


def asked(job: Job, children: Children, now: datetime = NOW) -> tuple[Any, ...]:
    """What has to be read before there is a plan: names of pods, or kinds and names of other objects."""
    try:
        plan(job, children, now)
    except Unread as unread:
        return tuple(name if kind == "Pod" else (kind, name) for kind, name in unread.objects)
    return ()


def carried_out(children: Children, plan: Plan, now: datetime = NOW) -> Children:
    """What is observed when the plan's actions were carried out and nothing else happened (deletions end at once)."""
    objects = list(children.objects)
    for action in plan.actions:
        if isinstance(action, Create):
            objects.append(stored(action.manifest, now))
        elif isinstance(action, Delete):
            objects = [one for one in objects if one["metadata"].get("uid") != action.uid]
        elif isinstance(action, Repair):
            uid = action.there["metadata"].get("uid")
            repaired = drift.repaired(action.manifest, action.there)
            objects = [repaired if one["metadata"].get("uid") == uid else one for one in objects]
        else:
            objects = [_not_serving(one) if one["metadata"].get("uid") == action.uid else one for one in objects]
    return Children(tuple(objects), children.reports, children.problems)


def _not_serving(pod: Manifest) -> Manifest:
    changed = deepcopy(pod)
    changed["metadata"]["labels"].pop(labels.SERVING, None)
    return changed


def names(manifests: Iterable[Manifest]) -> list[str]:
    """Names, sorted."""
    return sorted(one["metadata"]["name"] for one in manifests)


def gang_minimum(group: Manifest) -> int:
    """How many pods a PodGroup waits for."""
    spec = group.get("spec") or {}
    policy = (spec.get("schedulingPolicy") or {}).get("gang") or {}
    return int(policy.get("minCount", spec.get("minMember", 1)))
