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
    pods = builders.all_pods(job)
    for task, state in states.items():
        pods[task]["status"] = state
    made = builders.plan_answered(job, Children(tuple(pods.values())), at(seconds))
    return builders.with_status(job, made.status or job.status), made
