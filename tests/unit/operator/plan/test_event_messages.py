# SPDX-License-Identifier: Apache-2.0
"""What users read in Events: situation, type and reason, and the whole sentence. Elsewhere tests assert the reason."""

# ruff: noqa: E501 (a table reads best with one case a line)

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dtjob.plan.actions import Event
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders, queued
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.plan.elastic import elastic_story
from tests.unit.operator.plan.history import History
from tests.unit.operator.ruled import FAIL_42, planned, ruled

CLAIM = {"storage": {"volume": {"persistentVolumeClaim": {"claimName": "a"}}, "mountPath": "/kept"}}
EMPTY = {"storage": {"volume": {"emptyDir": {}}}}
ON_A_NODE = {"storage": {"volume": {"hostPath": {"path": "/data"}}}}
Events = Callable[[], list[Event]]


def told_of_failure(task: str, status: dict[str, Any], *, saved: bool = False, **spec: Any) -> list[Event]:
    """The Events of a job of which a pod fails; `saved`: it has a checkpoint at step 40."""
    history = History(builders.job(**spec))
    if saved:
        history.chief_says({"attempt": 0, "step": 44, "checkpoint": {"step": 40}})
        history.look(at(10))
    history.ends(task, status)
    history.look(at(20))
    return history.events


def told_of_restart(first: dict[str, Any], then: dict[str, Any], checkpoint: Any = CLAIM) -> list[Event]:
    """The Events of a job whose chief reports this, and that after a restart of its training process."""
    history = History(builders.job(**({"checkpoint": checkpoint} if checkpoint else {})))
    for report, now in ((first, 1), ({"attempt": 0, "incarnation": 1, **then}, 20)):
        history.chief_says({"attempt": 0, "incarnation": 0, **report})
        history.look(at(now))
    return history.events


CRASHED = {"task": "worker-1", "signal": "SIGSEGV", "step": 118}


def told_of_crashes(*counts: int, crashed: dict[str, Any] = CRASHED) -> list[Event]:
    """The Events of a job whose chief reports so many crashes at one look after the other."""
    history = History(builders.job())
    for number, count in enumerate(counts):
        crashes = {"count": count, **crashed}
        history.chief_says({"attempt": 0, "step": 100, "restoredStep": 100, "crashes": crashes})
        history.look(at(60 * number))
    return history.events


def told_of_more_workers() -> list[Event]:
    story = queued.running(replicaSpecs={"chief": {}, "worker": {"replicas": 2}}, elasticPolicy={"minReplicas": 1})
    story.scale(4)
    story.settle(at(10))
    story.admit(at(20), {"cpu": "spot"}, of=story.workloads[4])
    story.settle(at(21))
    return story.events


def told_of_eviction() -> list[Event]:
    story = queued.running()
    story.evict()
    story.look(at(100))
    return story.events


def told_of_resize(replicas: int, checkpoint: Any = elastic_story.CLAIM, without: tuple[str, ...] = ()) -> list[Event]:
    """The Events of a job of four workers that is to have so many, with a checkpoint at step 100.

    `without`: tasks that no node has room for.
    """
    story = elastic_story.Story(least=1, checkpoint=checkpoint)
    report = {"step": 100, "checkpoint": {"step": 100}, "attempt": 0}
    story.children = replace(story.children, reports={"chief-0": report})
    story.run()
    story.change(replicas=replicas)
    story.settle(at(10))
    story.places(now=at(20), without=without)
    return story.events


def told_of_resuming(checkpoint: Any, *, ran: bool = True) -> list[Event]:
    """The Events of a suspended job that is to go on. `ran`: it had pods before, and a checkpoint at step 40."""
    status = {
        **({"checkpoint": {"step": 40}, "active": {"seconds": 5}} if ran else {}),
        "conditions": [builders.condition("Suspended", reason="JobSuspended")],
    }
    job = builders.job(checkpoint=checkpoint, status=status)
    return list(builders.plan_answered(job, Children(), at(1)).events)


def told_of_evaluator(status: dict[str, Any], *rules: dict[str, Any]) -> list[Event]:
    return list(planned(ruled(*rules), {"evaluator-0": status})[1].events)


def told_of_a_chief_that_moves() -> list[Event]:
    """The Events of a job whose chief fails, and whose evaluator mounts the chief's volume."""
    history = History(builders.job("Default", evaluator=True, checkpoint=CLAIM))
    history.ends("chief-0", builders.ended(137, at(1), signal=9))
    history.look(at(1))
    return history.events


def typo(second: int) -> dict[str, Any]:
    """The end of a container whose program has a mistake in a callback."""
    return builders.failed(exception="KeyError: 'los'", when=at(second), stepped=True, step=64, location="train.py:8")


def told_of_two_failures(first: dict[str, Any], second: dict[str, Any]) -> list[Event]:
    """The Events of a job of which worker 1 fails, and then worker 0, which ran until then."""
    history = History(builders.job())
    for task, status, now in (("worker-1", first, 1), ("worker-0", second, 2)):
        history.ends(task, status)
        history.look(at(now))
    return history.events


def told_of_a_late_cause() -> list[Event]:
    """The Events of a job whose worker was killed, and was out of memory as its replaced pod shows later."""
    history = History(builders.job())
    history.ends("worker-1", {**builders.ended(137, at(1)), "phase": "Running"})
    history.look(at(1))
    history.becomes("worker-1-0", builders.out_of_memory(at(1)))
    history.look(at(2))
    return history.events


def told_of_last_evaluation(status: dict[str, Any], seconds: float = 0) -> list[Event]:
    """The Events of a job that has succeeded, and whose evaluator has this status so long after that."""
    history = History(builders.job("Default", evaluator=True))
    history.ends("chief-0", builders.ended(0, NOW))
    history.ends("evaluator-0", status)
    history.look(NOW)
    if seconds:
        history.look(at(seconds))
    return history.events


SAVED = {"step": 44, "restoredStep": 0, "checkpoint": {"step": 40}}
LEAVE = {"action": "LeaveFailed", "onExitCodes": {"operator": "In", "values": [3]}, "roles": ["evaluator"]}
UNREADABLE = "whose checkpoint was not there or could not be read"

EVENTS: list[tuple[str, Events, str, str]] = [
    ("a worker fails", lambda: told_of_failure("worker-0", builders.ended(137, signal=9)), "Warning Restarting",
     "worker-0 was killed (SIGKILL); training restarts"),
    ("a worker fails after a save", lambda: told_of_failure("worker-0", builders.ended(137, signal=9), saved=True, checkpoint=CLAIM), "Warning Restarting",
     "worker-0 was killed (SIGKILL); training restarts from the checkpoint at step 40 or a later one"),
    ("the checkpoint ends with the chief's pod", lambda: told_of_failure("chief-0", builders.out_of_memory(), saved=True, checkpoint=EMPTY), "Warning Restarting",
     "chief-0 ran out of memory (OOMKilled); training restarts at step 0, as the checkpoint at step 40 ends with the chief's pod"),
    ("a worker fails, and the checkpoint is in the chief's pod", lambda: told_of_failure("worker-0", builders.out_of_memory(), saved=True, checkpoint=EMPTY), "Warning Restarting",
     "worker-0 ran out of memory (OOMKilled); training restarts from the checkpoint at step 40 or a later one"),
    ("the checkpoint is on the node of the chief's pod", lambda: told_of_failure("chief-0", builders.out_of_memory(), saved=True, checkpoint=ON_A_NODE), "Warning Restarting",
     "chief-0 ran out of memory (OOMKilled); training restarts; the checkpoint at step 40 is on the node of the chief's earlier pod"),
    ("a program without `checkpoint` tells of one", lambda: told_of_failure("chief-0", builders.out_of_memory(), saved=True), "Warning Restarting",
     "chief-0 ran out of memory (OOMKilled); training restarts; where the program keeps its checkpoint at step 40 is not known"),
    ("another worker fails of the same incident", lambda: told_of_two_failures(builders.ended(137, at(1), signal=9), builders.ended(137, at(2), signal=9)), "Normal Restarting",
     "worker-0 was killed (SIGKILL); it is replaced, and not counted apart from the failure of worker-1"),
    ("another worker fails with the same exception", lambda: told_of_two_failures(typo(1), typo(2)), "Normal Restarting",
     "worker-0 failed in the same way; it is replaced, and not counted apart from the failure of worker-1"),
    ("the cause shows in a pod that was replaced", told_of_a_late_cause, "Normal Restarting",
     "worker-1 ran out of memory (OOMKilled): that is why training restarted"),
    ("a worker of ParameterServer fails", lambda: told_of_failure("worker-1", builders.ended(137, signal=9), strategy="ParameterServer", ps=1), "Warning Restarting",
     "worker-1 was killed (SIGKILL); training goes on without it until it is back"),
    ("a worker fails, and a rule counts no restart", lambda: list(planned(ruled({**FAIL_42, "action": "RestartAndIgnoreMaxRestarts"}), {"worker-1": builders.ended(42, at(19))})[1].events), "Warning Restarting",
     "worker-1 failed (exit code 42); failurePolicy.rules[0] (RestartAndIgnoreMaxRestarts) matches exit code 42; training restarts"),
    ("an evaluator moves with its chief", told_of_a_chief_that_moves, "Normal EvaluatorRestarting",
     "The evaluator moves with the chief, whose volume it mounts"),
    ("an evaluator fails", lambda: told_of_evaluator(builders.ended(1)), "Warning EvaluatorRestarting",
     "evaluator-0 failed (exit code 1); training goes on"),
    ("an evaluator is evicted after training has succeeded", lambda: told_of_last_evaluation(builders.evicted()), "Warning EvaluatorRestarting",
     "evaluator-0 was disrupted (Evicted); what was saved last is still to be evaluated"),
    ("an evaluator does not start within an hour of that", lambda: told_of_last_evaluation(builders.waiting("ErrImagePull", "not found"), 3600), "Warning EvaluationGivenUp",
     "evaluator-0 was not at work 60 min after training had ended (evaluator-0 waits: ErrImagePull: not found); what was saved last is not evaluated"),
    ("training has succeeded", lambda: told_of_last_evaluation(builders.running()), "Normal Succeeded", "Training has ended"),
    ("a rule leaves a failed evaluator alone", lambda: told_of_evaluator(builders.ended(3, at(19)), LEAVE), "Warning EvaluationGivenUp",
     "evaluator-0 failed (exit code 3); failurePolicy.rules[0] (LeaveFailed) matches exit code 3: it is not replaced, and nothing evaluates what is saved"),
    ("a process crashes and is started again", lambda: told_of_crashes(1), "Warning Crashed",
     "worker-1 was killed (SIGSEGV) after step 118; its program was started again in place"),
    ("a chief tells only that processes have crashed", lambda: told_of_crashes(1, crashed={}), "Warning Crashed",
     "a task was killed (by a signal); its program was started again in place"),
    ("several processes have crashed at the first look", lambda: told_of_crashes(3), "Warning Crashed",
     "worker-1 was killed (SIGSEGV) after step 118, and 2 more before it; its program was started again in place"),
    ("processes have crashed since the last look", lambda: told_of_crashes(1, 5), "Warning Crashed",
     "worker-1 was killed (SIGSEGV) after step 118, and 3 more before it; its program was started again in place"),
    ("training goes on from a checkpoint", lambda: told_of_restart(SAVED, {"step": 40, "restoredStep": 40, "checkpoint": {"step": 40}}), "Normal Resumed",
     "Training went on from the checkpoint at step 40"),
    ("training has gone on from a checkpoint, and has saved the next one", lambda: told_of_restart(SAVED, {"step": 60, "restoredStep": 40, "checkpoint": {"step": 60}}), "Normal Resumed",
     "Training went on from the checkpoint at step 40"),
    ("training goes on from an earlier checkpoint", lambda: told_of_restart(SAVED, {"step": 20, "restoredStep": 20, "checkpoint": {"step": 20}}), "Warning Resumed",
     f"Training went on from the checkpoint at step 20, and not from step 40, {UNREADABLE}"),
    ("the checkpoint cannot be read", lambda: told_of_restart(SAVED, {"step": 0, "restoredStep": 0}), "Warning StartedOver",
     f"Training began again at step 0, and not from step 40, {UNREADABLE}"),
    ("a restart comes before the first checkpoint", lambda: told_of_restart({"step": 9, "restoredStep": 0}, {"step": 0, "restoredStep": 0}), "Warning StartedOver",
     "Training began again at step 0: there was no checkpoint yet"),
    ("a job without checkpoints restarts", lambda: told_of_restart({"step": 9, "restoredStep": 0}, {"step": 0, "restoredStep": 0}, None), "Normal StartedOver",
     "Training began again at step 0; spec.checkpoint would have it go on"),
    ("a user wants fewer workers", lambda: told_of_resize(1), "Normal Resizing",
     "Workers 4 -> 1: spec.replicaSpecs.worker.replicas is 1"),
    ("there is room for one of two more workers", lambda: told_of_resize(6, without=("worker-5-placeholder",)), "Normal Resizing",
     "Workers 4 -> 5: there is room for 1 more of 6"),
    ("there is room for more workers", lambda: told_of_resize(6), "Normal Resizing",
     "Workers 4 -> 6: there is room for 2 more of 6"),
    ("a group of another size begins", lambda: told_of_resize(2), "Normal Resized",
     "Training goes on with 2 workers from the checkpoint at step 100 or a later one"),
    ("it begins on a volume that ends with the chief's pod", lambda: told_of_resize(2, EMPTY), "Normal Resized",
     "Training goes on with 2 workers at step 0, as the checkpoint at step 100 ends with the chief's pod"),
    ("a queue admits a job", lambda: queued.running().events, "Normal Admitted", "Admitted by cluster queue research"),
    ("a queue admits more workers", told_of_more_workers, "Normal Admitted", "Admitted anew by cluster queue research"),
    ("a queue evicts a job", told_of_eviction, "Normal Evicted",
     "Job evicted by Kueue (Preempted: Preempted to accommodate a workload)"),
    ("a user suspends a job", lambda: list(plan(builders.job(suspend=True), Children(), NOW).events), "Normal Suspended", "Job suspended"),
    ("a suspended job goes on", lambda: told_of_resuming(CLAIM), "Normal Resumed",
     "Job resumed; training goes on from the checkpoint at step 40 or a later one"),
    ("a job that never had a pod goes on", lambda: told_of_resuming(CLAIM, ran=False), "Normal Resumed", "Job resumed"),
    ("it goes on without its checkpoint", lambda: told_of_resuming(EMPTY), "Normal Resumed",
     "Job resumed; training goes on at step 0, as the checkpoint at step 40 ends with the chief's pod"),
]  # fmt: skip


@pytest.mark.parametrize(("events", "reason", "sentence"), [pytest.param(*row[1:], id=row[0]) for row in EVENTS])
def test_an_event_has_a_reason_and_a_sentence(events: Events, reason: str, sentence: str) -> None:
    assert sentence in [one.message for one in events() if f"{one.type} {one.reason}" == reason]
