# SPDX-License-Identifier: Apache-2.0
"""What rules about failures say of a pod, worked out from its status alone and not by the operator's own code."""

import signal
from typing import Any

from dtjob.api.job import Job
from dtjob.api.phase import ENDED
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.record.failure import Cause
from dtjob.plan.seen.children import Children
from tests.unit.operator.simulation.facts import attempt_of, is_suspended

Rule = dict[str, Any]
FAIL_2: Rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 255]}}
UNCOUNTED_127: Rule = {"action": "RestartAndIgnoreMaxRestarts", "onExitCodes": {"operator": "In", "values": [127]}}
RULES: tuple[Rule, ...] = (
    FAIL_2,
    UNCOUNTED_127,
    {**UNCOUNTED_127, "roles": ["chief"]},
    {"action": "RestartAndIgnoreMaxRestarts", "onSignals": ["SIGSEGV"]},
    {"action": "FailJob", "onReasons": ["OOMKilled"]},
    {"action": "Restart", "onReasons": ["OOMKilled"]},
    {"action": "FailJob", "onReasons": ["ImagePullBackOff"]},
    {"action": "RestartAndIgnoreMaxRestarts", "onReasons": ["ErrImagePull"]},
    {"action": "RestartAndIgnoreMaxRestarts", "onPodConditions": [{"type": "DisruptionTarget"}]},
    {"action": "LeaveFailed", "onExitCodes": {"operator": "NotIn", "values": [2]}, "roles": ["evaluator"]},
)
"""Rules that charge nothing but failures which are charged anyway."""


def said_of(rules: list[Rule], role: str, pod: Manifest) -> str | None:
    """The action of the first rule that matches, None where none does."""
    return next((rule["action"] for rule in rules if _matches(rule, role, pod.get("status") or {})), None)


def _matches(rule: Rule, role: str, status: dict[str, Any]) -> bool:
    if role not in rule.get("roles", ("chief", "worker", "ps")):
        return False
    states = {one["name"]: one.get("state") or {} for one in status.get("containerStatuses") or ()}
    inits = [one.get("state") or {} for one in status.get("initContainerStatuses") or ()]
    failed = [one["terminated"] for one in inits if (one.get("terminated") or {}).get("exitCode")]
    end = states.get("tensorflow", {}).get("terminated") or next(iter(failed), {})
    code = end.get("exitCode") or None
    if "onExitCodes" in rule:
        wanted = rule["onExitCodes"]
        return code is not None and (code in wanted["values"]) is (wanted["operator"] == "In")
    if "onSignals" in rule:
        return code is not None and code in [128 + signal.Signals[one] for one in rule["onSignals"]]
    if "onReasons" in rule:
        waits = [] if "terminated" in states.get("tensorflow", {}) else [states.get("tensorflow", {}), *inits]
        reasons = [end.get("reason"), status.get("reason"), *(one.get("waiting", {}).get("reason") for one in waits)]
        return bool(set(rule["onReasons"]) & set(reasons))
    held = {one["type"] for one in status.get("conditions") or () if one["status"] == "True"}
    return any(one["type"] in held for one in rule["onPodConditions"])


def check_rules(job: Job, children: Children, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Raises AssertionError where a plan, which was made of these `children`, does not do what the job's rules say.

    All pods of a suspended job are deleted, whatever they have done: rules say nothing of them. Some may still be there
    when the job goes on.
    """
    if before.get("phase") in ENDED or is_suspended(before) or is_suspended(after):
        return
    rules = job.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)["failurePolicy"].get("rules", [])
    pods = {one["metadata"]["name"]: one for one in children.owned_pods(job)}
    alone = job.spec.program is not None or job.spec.strategy.single_pod  # else a failure may come of another
    for task in topology.tasks(job) if alone and rules else ():
        pod = pods.get(topology.pod_name(job, task, attempt_of(before, task.id)))
        ends = pod is not None and said_of(rules, task.role, pod) == "FailJob" and _has_failed_by_itself(pod)
        assert not ends or after.get("phase") in ENDED, f"{task.id} has failed, and a rule ends the job over that"
    first, was, now = after.get("lastFailure") or {}, _incident(before), _incident(after)
    counts = [one.get("restarts", {}).get("causes", {}) for one in (before, after)]
    begun = any(was.get(name) != now.get(name) for name in ("startedAt", "number"))
    counted_once = sum(counts[1].values()) == sum(counts[0].values()) + 1
    if not (begun and counted_once) or any(counts[1].get(cause, 0) < count for cause, count in counts[0].items()):
        return
    pod = pods.get(first.get("pod", ""))
    action = said_of(rules, first["task"].rpartition("-")[0], pod) if pod else None
    assert now.get("action") == action, f"a rule says {action} of {first}"
    refilled = now.get("checkpointStep", -1) > was.get("checkpointStep", -1) or not was
    carried = 0 if refilled else was.get("charged", 0)
    more = next(cause for cause, count in counts[1].items() if count > counts[0].get(cause, 0))
    if more != now["cause"] and not refilled:  # the cause of the incident before shows only now, and is counted anew
        carried = max(0, carried + Cause(more).charged - _charged(was["cause"], was.get("action")))
    assert now.get("charged", 0) == carried + _charged(now["cause"], action), f"{was} became {now} over {first}"


def _charged(cause: str, action: str | None) -> bool:
    """Whether a failure of this cause is charged, over which a rule says this."""
    return action == "Restart" if action else Cause(cause).charged


def _incident(status: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = status.get("internal", {}).get("incident") or {}
    return found


def _has_failed_by_itself(pod: Manifest) -> bool:
    """Whether all that there is to know of the failure is known, and it comes of no other task."""
    status = pod["status"]
    codes = [one["state"].get("terminated", {}).get("exitCode") for one in status.get("containerStatuses") or ()]
    return status.get("phase") == "Failed" and 76 not in codes
