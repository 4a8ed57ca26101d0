"""Why a job in a queue has no pods for now, from what its Workload says."""

from __future__ import annotations

from dtjob.plan.kueue.words import deactivated, evicted, finished, queued, waits_for_checks
from dtjob.plan.lifetime.suspension import Pause
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import QUOTA_RESERVED, Workload


def pause_of(situation: Situation, workload: Workload) -> Pause:
    """What the job waits for."""
    words_told, cause = told(workload.queue)
    if workload.finished:
        return Pause("WorkloadFinished", finished(workload), words_told, "the job's Workload is finished")
    if workload.evicted:
        cause = evicted(workload)
    if not workload.active:
        return Pause("Deactivated", deactivated(workload), words_told, cause)
    if workload.reserved and not workload.evicted:
        return Pause(QUOTA_RESERVED, waits_for_checks(workload), words_told, cause)
    words = queued(situation.spec_job, workload.queue, situation.defaults, workload, situation.children.problems)
    return Pause("Queued", words, words_told, cause)


def resized(situation: Situation, workload: Workload) -> Pause:
    """Of a job whose replicas have changed: what was admitted is not what it asks for now, so it queues again."""
    words = queued(situation.spec_job, workload.queue, situation.defaults, None, {})
    cause = evicted(workload) if workload.evicted else "spec.replicaSpecs has changed, and has to be admitted anew"
    return Pause("Queued", words, told(workload.queue)[0], cause)


def told(queue: str) -> tuple[str, str]:
    """What the condition says, and what is said of pods that are left."""
    return f"Job waits in queue {queue}", f"the job waits in queue {queue}"
