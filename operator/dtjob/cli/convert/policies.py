# SPDX-License-Identifier: Apache-2.0
"""runPolicy, successPolicy and restartPolicy of a TFJob: how long the job lives, what ends it, and who runs it."""

from collections.abc import Sequence
from typing import Any

from dtjob.api.spec.failure_policy import FailurePolicy
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.cli.convert.reading import Fields, Findings
from dtjob.cli.convert.roles import Replicas

PATH = "spec.runPolicy"
NO_LIMIT = 1_000_000
"""Restarts in a row, in place of no limit."""
_TRAINING_OPERATOR = "kubeflow.org/training-operator"
_PERMANENT = range(1, 128)
"""Exit codes that fail a TFJob at once under ExitCode."""
_OF_LOST_PEERS = (75, 76)
"""Exit codes with which dtjob's trainer reports a lost peer, which a restart repairs."""
_CLEAN = ("None", "Running", "All")
_ALL_WORKERS = "AllWorkers"


def life_of(policy: Fields, replicas: Replicas, said: Findings, *, supervised: bool) -> Fields:
    """failurePolicy and the fields about the life of the job. `supervised`: the trainer runs the program."""
    failures = failure_policy(replicas, policy.get("backoffLimit"), said, supervised=supervised)
    found: Fields = {"failurePolicy": failures} if failures else {}
    kept = ("suspend", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
    found |= {name: policy[name] for name in kept if name in policy}
    clean = _word(policy.get("cleanPodPolicy"), f"{PATH}.cleanPodPolicy", _CLEAN, "All", said)
    found["cleanPodPolicy"] = clean or _CLEAN[0]
    if not clean:
        said.note(
            f"{PATH}.cleanPodPolicy",
            "left out, so None holds as in TFJob: pods that still run when the job ends stay, such as ps. To delete "
            "them, write Running",
        )
    if policy.get("managedBy") == _TRAINING_OPERATOR:
        said.note(f"{PATH}.managedBy", "names the operator of TFJob; it is left out, so that dtjob runs the job")
    elif "managedBy" in policy:
        found["managedBy"] = policy["managedBy"]
    return found


def success_policy(given: str | None, replicas: Replicas, said: Findings) -> Fields:
    """successPolicy. With a chief TFJob ignores AllWorkers."""
    path = "spec.successPolicy"
    if _word(given, path, (_ALL_WORKERS,), "left out", said) != _ALL_WORKERS:
        return {}
    if Role.CHIEF not in replicas:
        return {"successPolicy": _ALL_WORKERS}
    if Role.WORKER in replicas:
        why = "TFJob ignores AllWorkers if there is a chief, so it is left out; with it dtjob waits for the workers too"
        said.warn(path, why)
    else:
        said.note(path, "one task trains, so it decides; it is left out")
    return {}


def failure_policy(replicas: Replicas, limit: int | None, said: Findings, *, supervised: bool) -> Fields:
    """The failurePolicy of these roles. `limit`: the backoffLimit."""
    by_policy: dict[str, list[Role]] = {}
    for role, replica in replicas.items():
        by_policy.setdefault(replica.restart_policy, []).append(role)
        if replica.restart_policy == "Always" and role is not Role.PS:
            why = "Always also restarts a task that ended with exit code 0; in dtjob such a task is done"
            said.warn(f"{replica.path}.restartPolicy", why)
    exit_code, never = by_policy.get("ExitCode", []), by_policy.pop("Never", [])
    rules = _of_exit_codes(exit_code, supervised)
    if never:
        rules.append({"action": RuleAction.FAIL_JOB.value, "roles": _names(never)})
        said.note(
            f"{replicas[never[0]].path}.restartPolicy",
            "Never, the default of TFJob: every failure fails the job, a drained node too. To survive drains, write "
            "failurePolicy: {maxRestartsWithoutProgress: 0} instead of the rule",
        )
    restarts = any(role is not Role.EVALUATOR for roles in by_policy.values() for role in roles)
    policy = _limits(limit, restarts, said)
    if exit_code and limit is not None:
        why = "TFJob never counts restarts under ExitCode; dtjob counts each against maxRestarts"
        said.warn(f"{PATH}.backoffLimit", why)
    return {**policy, **({"rules": rules} if rules else {})}


def _of_exit_codes(roles: Sequence[Role], supervised: bool) -> list[Fields]:
    """1 to 127 fail the job, 128 and above restart. A disruption is a restart, whatever the exit code."""
    rules: list[dict[str, Any]] = []
    if training := [role for role in roles if role is not Role.EVALUATOR]:
        rules.append(
            {
                "action": RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS.value,
                "onPodConditions": [{"type": "DisruptionTarget"}],
                "roles": _names(training),
            }
        )
    if roles:
        values = [code for code in _PERMANENT if not supervised or code not in _OF_LOST_PEERS]
        codes = {"operator": "In", "values": values}
        rules.append({"action": RuleAction.FAIL_JOB.value, "onExitCodes": codes, "roles": _names(roles)})
    return rules


def _limits(limit: int | None, restarts: bool, said: Findings) -> Fields:
    """The limits of restarts. `restarts`: whether a role that trains restarts at all."""
    if limit is not None:
        most = FailurePolicy().max_restarts_without_progress
        return {"maxRestarts": limit, **({"maxRestartsWithoutProgress": limit} if limit > most else {})}
    if not restarts:
        return {}
    why = f"left out, so TFJob restarts without limit; failurePolicy.maxRestartsWithoutProgress is {NO_LIMIT}"
    said.note(f"{PATH}.backoffLimit", why)
    return {"maxRestartsWithoutProgress": NO_LIMIT}


def _word(value: str | None, path: str, known: Sequence[str], otherwise: str, said: Findings) -> str | None:
    """The word. The definition of TFJob takes any text, and its operator reads every text that is none of `known` as
    `otherwise`."""
    if not value or value in known:
        return value
    said.warn(path, f"{value!r} is none of {', '.join(known)}; TFJob reads it as {otherwise}, and so is the result")
    return otherwise


def _names(roles: Sequence[Role]) -> list[str]:
    return [role.value for role in roles]
