# SPDX-License-Identifier: Apache-2.0
"""Jobs with rules about failures, and plans for them."""

from typing import Any

from dtjob.api.job import Job
from dtjob.plan.actions import Plan
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.builders import at

TARGET = {"type": "DisruptionTarget"}
FAIL_42 = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}


def ruled(*rules: dict[str, Any], **more: Any) -> Job:
    """A job with an evaluator and these rules."""
    policy = {"rules": list(rules), "backoff": {"initialSeconds": 0, "maxSeconds": 0}, **more.pop("policy", {})}
    return builders.job(evaluator=True, failurePolicy=policy, **more)


def planned(job: Job, states: dict[str, Any], seconds: float = 20, **status: Any) -> tuple[Job, Plan]:
    """The job with its pods in these states, by task; the others run; and the plan for it. `Job` is what is then
    stored."""
    job = builders.with_status(job, {"allCreated": True, **job.status, **status})
    pods = builders.all_pods(job, **states)
    return builders.looked(job, Children(tuple(pods.values())), at(seconds))


def out_of_memory_shows_late(job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """The statuses of a job of which worker 1 was killed and replaced, and then its pod says that it was out of
    memory."""
    job = builders.with_status(job, {"allCreated": True})
    pods = builders.all_pods(job, worker_1={**builders.ended(137, at(19)), "phase": "Running"})
    statuses = []
    for seconds in (20, 21):
        job, _ = builders.looked(job, Children(tuple(pods.values())), at(seconds))
        statuses.append(job.status)
        pods["worker-1"]["status"] = builders.out_of_memory(at(19))
    return statuses[0], statuses[1]
