# SPDX-License-Identifier: Apache-2.0
"""What users read in a status: situation, reason, and the whole sentence. Elsewhere tests assert the reason.

A sentence that is in the status of a job is a row of `STATUSES`, and one of `status.workers` a row of `WORKERS`.
"""

# ruff: noqa: E501 (a table reads best with one case a line)

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.local.here import DEFAULTS
from dtjob.objects import kueue
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Plan
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders, queued
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.plan.elastic import elastic_story
from tests.unit.operator.plan.history import History
from tests.unit.operator.queued import QUEUE
from tests.unit.operator.ruled import FAIL_42, planned, ruled

Statuses = Callable[[], dict[str, Any]]
MISSING = "ModuleNotFoundError: No module named 'foo'"
CLAIM = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "a"}}, "mountPath": "/kept"}}
EMPTY = {"storage": {"volume": {"emptyDir": {}}}}
ON_A_NODE = {"storage": {"volume": {"hostPath": {"path": "/data"}}}}
FULL = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '
QUOTA = "pods is forbidden: exceeded quota: small"
RAN = {"since": "2026-11-21T10:00:00Z", "allRanTime": "2026-11-21T10:00:00Z"}
LEFT = {"attempt": 0, "incarnation": 0, "stepped": False, "restoredStep": 690, "step": 690, "totalSteps": 690}


def looked_at(job: Job, pods: dict[str, Any], now: Any = NOW, **children: Any) -> Plan:
    """The plan for a job with these pods and its shared objects."""
    objects = (*pods.values(), *map(builders.stored, shared_objects(job)))
    return builders.plan_answered(job, Children(objects, **children), now)


def with_pod(task: str, status: dict[str, Any], *, now: Any = NOW, node: bool = True) -> dict[str, Any]:
    """The status of a job of which one pod has this status, and the others run."""
    job = builders.job()
    pods = builders.all_pods(job)
    pods[task]["status"] = status
    if not node:
        del pods[task]["spec"]["nodeName"]
    return looked_at(job, pods, now).status or {}


def chief_says(**report: Any) -> dict[str, Any]:
    """The status of a job whose pods run and whose chief reports that."""
    job = builders.job()
    return looked_at(job, builders.all_pods(job), reports={"chief-0": report}).status or {}


def after_the_end_of(task: str, status: dict[str, Any], *, twice: bool = False, **spec: Any) -> dict[str, Any]:
    """The status of a job of which one pod has failed, or one and then its successor."""
    history = History(builders.job(**spec))
    history.ends(task, status)
    if twice:
        history.look(at(1))
        history.end_what_is_deleted()
        history.look(at(60))
        history.ends(task, status)
    history.look(at(61))
    return history.job.status


def again_and_again(status: dict[str, Any], *, saved: bool = False, **policy: Any) -> dict[str, Any]:
    """The status of a job whose worker 1 ends like this after each start, until the job fails. `saved`: at step 50."""
    history = History(builders.job(failurePolicy={"backoff": {"initialSeconds": 0, "maxSeconds": 0}, **policy}))
    if saved:
        history.chief_says({"attempt": 0, "step": 50, "checkpoint": {"step": 50}})
    history.look(at(1))
    for number in range(20):
        history.ends("worker-1", status)
        history.look(at(100 * number))
        if history.stands[0] == "Failed":
            break
        history.end_what_is_deleted()
        history.look(at(100 * number + 10))
    return history.job.status


def waits_with_wrong_owner(now: Any = NOW) -> dict[str, Any]:
    """The status of a job of which an earlier job of its name has left a pod that still runs."""
    old = builders.pod(builders.job(uid="old"), "chief-0", builders.running(), attempt=1)
    return plan(builders.job(), Children((builders.deleting(old, grace=30),)), now).status or {}


def suspended(*, pods: bool) -> dict[str, Any]:
    job = builders.job(suspend=True, status={"active": RAN})
    return looked_at(job, builders.all_pods(job) if pods else {}).status or {}


def succeeds(report: str = "") -> dict[str, Any]:
    """The status of a job whose chief ends well with this report."""
    job = builders.job("Default", checkpoint=CLAIM)
    return looked_at(job, builders.all_pods(job, builders.ended(0, message=report)), at(5)).status or {}


def succeeds_here(report: str) -> dict[str, Any]:
    """The same under `dtjob run`."""
    job, defaults = builders.job("Default", checkpoint=CLAIM), replace(DEFAULTS, checkpoints="/work/.dtjob/checkpoints")
    pods = builders.all_pods(job, builders.ended(0, message=report))
    objects = (*pods.values(), *map(builders.stored, shared_objects(job)))
    return plan(job, Children(objects), at(5), defaults).status or {}


def late(seconds: float, *, runs: bool = False, **deadlines: int) -> dict[str, Any]:
    job = builders.job(**deadlines, status={"active": RAN if runs else {"since": RAN["since"]}})
    pods = builders.all_pods(job, builders.running() if runs else builders.waiting("ImagePullBackOff", "no such image"))
    job = builders.with_status(job, looked_at(job, pods).status or {})
    return looked_at(job, pods, at(seconds)).status or {}


def in_queue(*, quota: bool = False, flavours: dict[str, str] | None = None, **spec: Any) -> queued.Story:
    """A job in a queue, that waits for quota, has quota and waits for a check, or was admitted to these flavours."""
    story = queued.Story(spec.pop("labels", None), **spec)
    story.settle()
    if quota:
        story.reserve()
        story.settle()
    if flavours:
        story.admit(flavours=flavours)
        story.look()
    return story


def resized(*placed: str) -> dict[str, Any]:
    """The status of an elastic job whose group of two workers begins; these pods of it run."""
    story = elastic_story.scaled(2)
    story.settle(at(10))
    if placed:
        story.places(*placed, now=at(11))
    return story.job.status


CPU = {"chief": {"resources": {"requests": {"cpu": "1"}}}, "worker": {"replicas": 2}}

STATUSES: list[tuple[str, Statuses, str, str]] = [
    ("a container cannot start", lambda: with_pod("worker-0", builders.waiting("ImagePullBackOff", "no such image")), "WaitingForPods",
     "worker-0 waits: ImagePullBackOff: no such image (pod digits-worker-0-0, on node node-1 since 2026-11-21T10:00:00Z)"),
    ("a pod is slow to start", lambda: with_pod("worker-0", builders.waiting("ContainerCreating"), now=at(15)), "WaitingForPods",
     "worker-0 waits: ContainerCreating (pod digits-worker-0-0, on node node-1 since 2026-11-21T10:00:00Z)"),
    ("no scheduler has looked at a pod", lambda: with_pod("worker-0", {"phase": "Pending"}, now=at(10), node=False), "WaitingForPods",
     "worker-0 waits: no scheduler has given it a node or said why not (pod digits-worker-0-0, since 2026-11-21T10:00:00Z)"),
    ("no node takes a pod", lambda: with_pod("worker-0", builders.unschedulable("no GPU"), node=False), "WaitingForPods",
     "worker-0 waits: Unschedulable: no GPU"),
    ("a pod of an earlier job may still write checkpoints", waits_with_wrong_owner, "WaitingForPods",
     "chief-0 waits: pod digits-chief-0-1 on node node-1 has not ended, may write the same checkpoints, and is not this job's but bears its name"),
    ("that pod's node does not answer", lambda: waits_with_wrong_owner(at(45)), "WaitingForPods",
     "chief-0 waits: pod digits-chief-0-1 on node node-1, which does not answer (is it down for good? taint it node.kubernetes.io/out-of-service), has not ended, may write the same checkpoints, and is not this job's but bears its name"),
    ("an object is refused", lambda: plan(builders.job(), Children(problems={"Pod/digits-chief-0-0": QUOTA}), NOW).status or {}, "CannotCreate",
     "Pod/digits-chief-0-0: pods is forbidden: exceeded quota: small"),
    ("nobody names an image", lambda: plan(builders.job(image=None), Children(), NOW).status or {}, "ImageMissing",
     "spec.image is left out, and this operator has no default image: delete the job and apply it again with spec.image, or have the operator's default set (jobs.image in the chart's values, --default-image on its command line)"),
    ("the training process waits", lambda: chief_says(state="starting", message="/checkpoints is in use"), "AllTasksRunning",
     "chief-0 says: /checkpoints is in use"),
    ("a worker has failed", lambda: after_the_end_of("worker-1", builders.ended(137, signal=9)), "Signal",
     "worker-1 was killed (SIGKILL)"),
    ("it has failed again, and a backoff is not over", lambda: after_the_end_of("worker-1", builders.ended(137, signal=9), twice=True), "Signal",
     "worker-1 was killed (SIGKILL); the next start is at 2026-11-21T10:01:11Z (failurePolicy.backoff)"),
    ("a new group begins", resized, "Resized", "3 tasks of the new group do not run yet"),
    ("all but one task of a new group run", lambda: resized("chief-0-1", "worker-0-1"), "Resized",
     "1 task of the new group does not run yet"),
    ("a user suspends a job with pods", lambda: suspended(pods=True), "JobSuspended",
     "spec.suspend is true: the pods that are left save and end"),
    ("no pod is left of a suspended job", lambda: suspended(pods=False), "JobSuspended",
     "spec.suspend is true: training goes on when that is false"),
    ("a job waits for quota", lambda: in_queue(replicaSpecs=CPU).job.status, "Queued",
     "queued in team-a, position unknown; needs 1 cpu"),
    ("a job waits for an admission check", lambda: in_queue(quota=True).job.status, "QuotaReserved",
     "quota is reserved in cluster queue research; waits for admission check nodes is Pending (asking for nodes)"),
    ("the flavour of an admitted job is not there", lambda: in_queue(flavours={"cpu": "gone"}).job.status, "Admitted",
     "admitted by cluster queue research, but there is no ResourceFlavor gone"),
    ("the priority class of a queued job is not there", lambda: in_queue(labels={**QUEUE, kueue.PRIORITY_CLASS: "high"}).job.status, "NoPriorityClass",
     "label kueue.x-k8s.io/priority-class: there is no WorkloadPriorityClass high; the job is queued as soon as there is"),
    ("a rule fails the job over an exit code", lambda: planned(ruled(FAIL_42), {"worker-1": builders.ended(42, at(19))})[0].status, "PodFailurePolicy",
     "worker-1 failed (exit code 42); failurePolicy.rules[0] (FailJob) matches exit code 42"),
    ("a rule fails the job over a container that cannot start", lambda: (planned(ruled({"action": "FailJob", "onReasons": ["ErrImagePull"]}), {"worker-1": builders.waiting("ErrImagePull", "no such image")}, allCreated=False)[0].status), "PodFailurePolicy",
     "worker-1 cannot start (ErrImagePull); failurePolicy.rules[0] (FailJob) matches reason ErrImagePull"),
    ("the budget of restarts is used up", lambda: again_and_again(builders.evicted("Evicted", FULL), maxRestartsWithoutProgress=2), "MaxRestartsExceeded",
     'worker-1 was evicted: Usage of EmptyDir volume "scratch" exceeds the limit "1Gi"; failurePolicy.maxRestartsWithoutProgress (2) is used up'),
    ("no restart is allowed", lambda: again_and_again(builders.ended(1), maxRestartsWithoutProgress=0), "MaxRestartsExceeded",
     "worker-1 failed (exit code 1); failurePolicy.maxRestartsWithoutProgress is 0, so training was not restarted"),
    ("the budget is used up after a checkpoint", lambda: again_and_again(builders.ended(1), saved=True, maxRestartsWithoutProgress=1), "MaxRestartsExceeded",
     "worker-1 failed (exit code 1); failurePolicy.maxRestartsWithoutProgress (1) is used up, with no checkpoint newer than step 50"),
    ("no restart of the whole life is allowed", lambda: again_and_again(builders.ended(1), maxRestarts=0), "MaxRestartsExceeded",
     "worker-1 failed (exit code 1); failurePolicy.maxRestarts is 0, so training was not restarted"),
    ("the budget of the whole life is used up", lambda: again_and_again(builders.ended(1), maxRestarts=1), "MaxRestartsExceeded",
     "worker-1 failed (exit code 1); failurePolicy.maxRestarts (1) is used up"),
    ("disruptions come again and again", lambda: again_and_again(builders.rejected("UnexpectedAdmissionError"), maxDisruptionsWithoutProgress=3), "MaxDisruptionsExceeded",
     "worker-1 never started (UnexpectedAdmissionError); 3 restarts in a row that were not the job's own doing (failurePolicy.maxDisruptionsWithoutProgress) were tried"),
    ("a rule counts no restart, and they come again and again", lambda: again_and_again(builders.ended(42), maxDisruptionsWithoutProgress=2, rules=[{**FAIL_42, "action": "RestartAndIgnoreMaxRestarts"}]), "MaxDisruptionsExceeded",
     "worker-1 failed (exit code 42); failurePolicy.rules[0] (RestartAndIgnoreMaxRestarts) matches exit code 42; 2 restarts in a row that a rule does not count (failurePolicy.maxDisruptionsWithoutProgress) were tried"),
    ("a program fails twice alike", lambda: after_the_end_of("chief-0", builders.failed(exception=MISSING), twice=True, strategy="Mirrored"), "ProgramFailed",
     "the program failed twice in the same way: ModuleNotFoundError: No module named 'foo' (chief-0, exit code 1); correct the program and create the job again"),
    ("a program fails with what no restart helps", lambda: after_the_end_of("worker-0", builders.failed(exception="ModelFitError: refused", permanent=True)), "ProgramFailed",
     "training failed, and a restart does not help: ModelFitError: refused (worker-0, exit code 1)"),
    ("not all tasks run in time", lambda: late(30, startDeadlineSeconds=30), "StartDeadlineExceeded",
     "not all tasks ran within startDeadlineSeconds (30): 3 of 3 tasks did not run: chief-0 waits: ImagePullBackOff: no such image (pod digits-chief-0-0, on node node-1 since 2026-11-21T10:00:00Z)"),
    ("a job is active for too long, and waits", lambda: late(100, activeDeadlineSeconds=100), "DeadlineExceeded",
     "the job was active for longer than activeDeadlineSeconds (100); at the end 3 of 3 tasks did not run: chief-0 waits: ImagePullBackOff: no such image (pod digits-chief-0-0, on node node-1 since 2026-11-21T10:00:00Z)"),
    ("a job is active for too long, and runs", lambda: late(100, runs=True, activeDeadlineSeconds=100), "DeadlineExceeded",
     "the job was active for longer than activeDeadlineSeconds (100)"),
    ("the chief has finished", succeeds, "Completed", "training has ended"),
    ("the weights of the model are no numbers", lambda: succeeds('{"attempt": 0, "step": 9, "weights": "NaN"}'), "Completed",
     "training has ended, but the weights of the model hold NaN"),
    ("the program trained no step", lambda: succeeds('{"stepped": false, "attempt": 0, "incarnation": 0}'), "Completed",
     "training has ended: the program ended with exit code 0 and trained no step; look in its log for why it calls neither fit nor train"),
    ("another run has left nothing to train", lambda: succeeds(json.dumps(LEFT)), "Completed",
     "training has ended: nothing was left to train: the job found a checkpoint of step 690 in /kept, of a run that has ended; raise the number of epochs or steps to train on, or use another checkpoint.storage to train again"),
    ("another run on this machine has left nothing to train", lambda: succeeds_here(json.dumps(LEFT)), "Completed",
     "training has ended: nothing was left to train: the job found a checkpoint of step 690 in /work/.dtjob/checkpoints, of a run that has ended; raise the number of epochs or steps to train on, or run the command with --fresh to train again"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "reason", "sentence"), [pytest.param(*row[1:], id=row[0]) for row in STATUSES])
def test_the_status_of_a_job_has_a_reason_and_a_sentence(status: Statuses, reason: str, sentence: str) -> None:
    found = status()
    assert (found["reason"], found["message"]) == (reason, sentence)


def grows(replicas: int = 6, *, refused: bool = False) -> dict[str, Any]:
    """`status.workers` of a job that runs with four workers, and is to have so many."""
    story = elastic_story.scaled(replicas)
    story.settle(at(10))
    if refused:
        story.places(now=at(20), without=("worker-4-placeholder", "worker-5-placeholder"))
    return story.workers


def is_refused(*pods: str) -> dict[str, Any]:
    """The same of a job of which the API server has refused these pods."""
    story = elastic_story.scaled(6, evaluator=True)
    story.settle(at(10))
    story.lose(*pods)
    story.children = replace(story.children, problems={f"Pod/{name}": f"{name} is denied" for name in pods})
    story.write(at(20))
    return story.workers


def shrunk() -> elastic_story.Story:
    return elastic_story.Story().shrunk()


def shrunk_and_suspended() -> dict[str, Any]:
    story = shrunk()
    story.change(suspend=True)
    story.settle(at(400))
    return story.workers


def shrunk_and_succeeded() -> dict[str, Any]:
    story = shrunk()
    for name in story.tasks:
        story.becomes(name, builders.ended(0, at(400)))
    story.settle(at(400))
    return story.workers


def without_room() -> dict[str, Any]:
    story = elastic_story.without_room("worker-1-0", "worker-3-0", now=at(50))
    return story.workers


WORKERS: list[tuple[str, Statuses, str, str]] = [
    ("placeholders wait for room", grows, "NoRoom",
     "the group has 4 of 6 workers; a placeholder pod waits for room for each of the others"),
    ("the scheduler has no room for them", lambda: grows(refused=True), "NoRoom",
     "the group has 4 of 6 workers; a placeholder pod waits for room for each of the others (digits-worker-4-placeholder waits: Unschedulable: 0/3 nodes are available)"),
    ("a placeholder is refused, and an evaluator", lambda: is_refused("digits-evaluator-0-0", "digits-worker-4-placeholder"), "NoRoom",
     "the group has 4 of 6 workers; a placeholder pod waits for room for each of the others (digits-worker-4-placeholder waits: digits-worker-4-placeholder is denied)"),
    ("training waits for room", without_room, "Unschedulable",
     "training waits for room since 2026-11-21T10:00:50Z; it goes on with what there is at 2026-11-21T10:05:50Z"),
    ("the group has shrunk just now", lambda: shrunk().workers, "NoRoom",
     "the group has 2 of 4 workers; room for more is looked for from 2026-11-21T10:15:00Z on"),
    ("a group that has shrunk is suspended", shrunk_and_suspended, "NoRoom", "the group has 2 of 4 workers"),
    ("a group that has shrunk ends well", shrunk_and_succeeded, "NoRoom", "the group has 2 of 4 workers"),
]  # fmt: skip


@pytest.mark.parametrize(("workers", "reason", "sentence"), [pytest.param(*row[1:], id=row[0]) for row in WORKERS])
def test_the_number_of_workers_has_a_reason_and_a_sentence(workers: Statuses, reason: str, sentence: str) -> None:
    found = workers()
    assert (found["reason"], found["message"]) == (reason, sentence)
