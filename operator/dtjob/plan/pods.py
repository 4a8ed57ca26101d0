# SPDX-License-Identifier: Apache-2.0
"""Pods: the calls that make and delete pods and shared objects until they are as they should be.

A job with a gang has its PodGroup before its pods, and as long as it has pods. A suspended or ended job gives it up, as
a PodGroup may hold a queue's room by itself. A pod that replaces another joins the gang. The others are bound, so it is
bound as soon as there is a node for it.

The task that writes checkpoints starts only when no other pod can write them any more. A watch by label says DELETED of
an object whose label somebody has removed. Before such a pod is replaced, the API server is asked for it by name, which
nobody can change. That holds for pods of every task.
"""

from datetime import datetime, timedelta
from functools import partial

from dtjob.api.job import Job
from dtjob.api.status.placement import Gang
from dtjob.objects import drift, gangs, labels, shared, topology
from dtjob.objects.gangs import joined
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.pod import pod
from dtjob.plan.actions import Action, Create, Delete, Repair, StopServing
from dtjob.plan.failure.budget import is_due
from dtjob.plan.kueue import placed, pod_set_of
from dtjob.plan.seen.children import PodState, TaskView, created_at, deleting, ended, facts_of, is_lost, node_of
from dtjob.plan.seen.situation import Draft, Situation

TRUSTED_FOR = timedelta(minutes=1)
"""For so long a new ConfigMap counts as there. On a busy cluster a job is planned twice before its pods are seen."""


def converge(situation: Situation) -> list[Action]:
    """What is to be taken away and made now, of a job that goes on."""
    superseded = (view for view in situation.views if view.pods and view.pods != (view.pod,))
    retired = [action for view in superseded for action in retire(view)]
    # Nothing tells of the ends of pods that have lost the label by which they are watched.
    gone = {action.uid for action in retired if isinstance(action, Delete)}
    lost = (one for one in situation.children.unlisted("Pod") if one["metadata"]["uid"] not in gone)
    why = f"it has lost the label {labels.JOB_NAME}"
    retired += [Delete.of(one, why) for one in lost if not (deleting(one) or ended(one))]
    missing = _missing_pods(situation)
    shared_ones = [*keep_shared(situation), *(make_config_map(situation) if missing else ())]
    return [*retired, *shared_ones, *keep_gang(situation), *missing]


def converge_evaluator(situation: Situation, view: TaskView) -> list[Action]:
    """What is to be taken away and made now for an evaluator that has yet to finish when training has ended."""
    # Not beside the chief, which has ended: the scheduler would find no such pod.
    made = [create_pod(situation, view, None)] if view.state is PodState.MISSING else []
    return [*retire(view), *keep_shared(situation), *(make_config_map(situation) if made else ()), *made]


def retire(view: TaskView) -> list[Action]:
    """Take earlier attempts out of service and away."""
    actions: list[Action] = []
    for old in view.pods:
        if topology.attempt_of(old) >= view.attempt:
            continue
        name, uid = old["metadata"]["name"], old["metadata"]["uid"]
        if labels.SERVING in labels.of(old) and not facts_of(old).is_terminal:
            actions.append(StopServing(name, uid))
        if not deleting(old):
            actions.append(Delete.of(old, f"{view.task.id} is at attempt {view.attempt}"))
    return actions


def _missing_pods(situation: Situation) -> list[Action]:
    """The pods of current attempts that are not there, once the wait after an incident is over."""
    chief = situation.chief
    if not is_due(situation.status.internal.incident, situation.now):
        return []
    # The task that writes checkpoints is never there twice; any other need not wait for a predecessor that is stuck.
    held_back = chief.task if writer_left(situation) is not None else None
    missing = [view for view in situation.views if view.state is PodState.MISSING and view.task != held_back]
    trains = [view for view in missing if not view.evaluates]
    if trains:  # a quota that has no room for all must not give the evaluator a place that training needs
        missing = trains
    missing = [view for view in missing if not waits_for_the_chief(situation, view)]
    return [create_pod(situation, view, chief.attempt) for view in missing]


def create_pod(situation: Situation, view: TaskView, chief_attempt: int | None) -> Create:
    """The task's pod, to be made when its turn comes."""
    job, task, attempt = situation.group_job, view.task, view.attempt
    make = partial(_pod, situation, view, chief_attempt)
    return Create("Pod", topology.pod_name(job, task, attempt), make, task.role.value)


def _pod(situation: Situation, view: TaskView, chief_attempt: int | None) -> Manifest:
    """The task's pod, where the queue that the job came out of wants it, in its gang if it trains."""
    job, pod_set = pod_set_of(situation, view.task.role)
    made = placed(pod(job, view.task, view.attempt, situation.defaults, chief_attempt), pod_set)
    return joined(made, job, situation.defaults) if view.task.role.trains else made


def keep_shared(situation: Situation) -> list[Create | Repair]:
    """Create what is missing of all but the ConfigMap, and repair what somebody changed.

    An object that is being deleted is made again once it is gone. Fields that others added stay (`objects/drift.py`).
    """
    job = situation.group_job
    there = {
        (child["kind"], child["metadata"]["name"]): child
        for child in situation.children.objects
        if child["kind"] in drift.SHARED_KINDS and shared.is_of(child, job.metadata.name, job.metadata.uid)
    }
    # They come before the first pod, so that of a job with pods each of them was there.
    again = any(view.pods for view in situation.views)
    actions: list[Create | Repair] = []
    for wanted in shared.shared_objects(job, situation.defaults.readers, with_config_map=False):
        found = there.get((wanted["kind"], wanted["metadata"]["name"]))
        if found is None:
            actions.append(Create.of(wanted, again=again))
        elif not deleting(found) and (field := drift.drifted(wanted, found)):
            actions.append(Repair(wanted, found, field))
    return actions


def make_config_map(situation: Situation) -> list[Create]:
    """Make the ConfigMap, for pods that are about to be made, unless the job has it. A job without pods asks for it
    first, as nobody may list or watch ConfigMaps. Raises Unread."""
    known = _config_map(situation)
    if known is None:
        return [_made(situation, again=False)]
    has_pods = bool(situation.children.owned_pods(situation.group_job))
    has_it = has_pods or _is_new(situation, known) or _is_there(situation)
    return [] if has_it else [_made(situation, again=True)]


def _is_new(situation: Situation, known: Manifest) -> bool:
    """Whether a job without a status has just made the ConfigMap. Any other may have lost it while it had no pods."""
    return not situation.status.conditions and situation.now < created_at(known) + TRUSTED_FOR


def look_for_config_map(draft: Draft) -> None:
    """Have the ConfigMap made again if it is gone, as a pod that is slow to start may wait for it."""
    makes = any(isinstance(one, Create) and one.kind == "ConfigMap" for one in draft.actions)
    if draft.events_of and not makes:
        draft.unless_there = _made(draft.situation, _config_map(draft.situation) is not None)


def _config_map(situation: Situation) -> Manifest | None:
    """The ConfigMap of the job's group, as far as it is known."""
    job = situation.group_job
    ours, name = situation.children.owned(job, ("ConfigMap",)), shared.config_map_name(job)
    return next((one for one in ours if one["metadata"]["name"] == name), None)


def _is_there(situation: Situation) -> bool:
    """Whether the cluster has the ConfigMap now."""
    job = situation.group_job
    (found,) = situation.children.found(("ConfigMap", shared.config_map_name(job)))
    return found is not None and shared.is_of(found, job.metadata.name, job.metadata.uid)


def _made(situation: Situation, again: bool) -> Create:
    """The ConfigMap, to be made. Its text takes 5 ms for 4,000 tasks."""
    job = situation.group_job
    return Create("ConfigMap", shared.config_map_name(job), partial(shared.config_map, job), again=again)


_WAITING = (PodState.MISSING, PodState.PENDING)


def note_gang(draft: Draft) -> None:
    """Say in the status whose gang it is: that of the provider that it began with."""
    job, status = draft.situation.group_job, draft.status
    provider, gang = gangs.provider_of(job, draft.situation.defaults), None
    if provider is not None:
        least = gangs.min_available(job)
        gang = (status.gang or Gang(provider="", min_available=0)).but(provider=provider.value, min_available=least)
    draft.status = status if status.gang == gang else status.but(gang=gang)


def keep_gang(situation: Situation) -> list[Create | Repair]:
    """What is to be made before the pods, or put right while some of them wait for a node."""
    provider = gangs.provider_of(situation.group_job, situation.defaults)
    there = next((one for one in _groups(situation) if gangs.PROVIDERS[one["kind"]] is provider), None)
    if there is not None and not deleting(there) and all(view.state not in _WAITING for view in situation.training):
        return []
    unfinished = sum(view.state is not PodState.SUCCEEDED for view in situation.training)
    wanted = gangs.pod_group(situation.group_job, situation.defaults, at_most=unfinished)
    if wanted is None:
        return []
    if there is None or deleting(there):
        return [Create.of(wanted)]
    field = drift.drifted(wanted, there)
    return [Repair(wanted, there, field)] if field else []


def waits_for_the_chief(situation: Situation, view: TaskView) -> bool:
    """Whether an evaluator that goes to the chief's node is not to be made yet, as the chief's pod has none.

    A scheduler takes a pod that it holds for its gang as bound. It would bind the evaluator beside a chief that is
    released again and ends up elsewhere (seen with Coscheduling).
    """
    job, chief = situation.group_job, situation.chief
    if job.spec.scheduling.gang is None or not view.evaluates or not topology.evaluator_follows_chief(job):
        return False
    return chief.state in _WAITING and (chief.pod is None or not node_of(chief.pod))


def release_gang(situation: Situation) -> list[Delete]:
    """The PodGroups of a job that is to have no pods now."""
    why = "the job has no pods to bind"
    return [Delete.of(one, why) for one in _groups(situation) if not deleting(one)]


def _groups(situation: Situation) -> list[Manifest]:
    """The job's own PodGroups, as last seen."""
    return situation.children.owned(situation.group_job, gangs.PROVIDERS)


def writer_left(situation: Situation) -> Manifest | None:
    """The pod whose end the chief's next pod waits for. None if it waits for none, or exists already.

    That is an earlier attempt of the same task, or any pod with this job's name that the job does not control. A job
    that was deleted and applied again has the same claim, and `kubectl delete` returns while the old pod still saves.
    """
    chief = situation.chief
    if chief.pod is not None:
        return None
    earlier = next((pod for pod in chief.pods if not ended(pod)), None)
    pods = (one for one in situation.children.objects if one["kind"] == "Pod")
    others = (pod for pod in pods if not _controls(situation.group_job, pod))
    return earlier or next((pod for pod in others if not facts_of(pod).is_terminal), None)


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


def _controls(job: Job, pod: Manifest) -> bool:
    """Whether the pod's owner is this job in name and uid: somebody may have edited one of them."""
    return facts_of(pod).controller == job.metadata.uid and labels.controlling_job(pod) == job.metadata.name


def _where(pod: Manifest, now: datetime) -> str:
    node = node_of(pod)
    if not node:
        return ""
    if not is_lost(pod, now):
        return f" on node {node}"
    # Kubernetes keeps such a pod until the node is back, gone, or tainted out-of-service.
    return f" on node {node}, which does not answer (is it down for good? taint it node.kubernetes.io/out-of-service),"


LOOKED_BACK = 5
"""How many earlier attempts are asked for. A chief is made only when all before it have ended, so only the last one
that was made may be running. Few attempts after it are given up before they are made."""


def find_vanished(situation: Situation) -> None:
    """Raises Unread for pods that existed, are not seen any more, and were not asked for yet."""
    had_pod, resizes = situation.status.internal.had_pod, situation.resizing is not None
    missing = [
        view
        for view in situation.views
        if view.state is PodState.MISSING
        # After a change of the size, the next chief is so many attempts later that this one would not be looked for.
        and (had_pod(view.task.id) or (resizes and view.task == situation.chief.task))
    ]
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
