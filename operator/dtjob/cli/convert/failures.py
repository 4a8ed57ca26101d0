# SPDX-License-Identifier: Apache-2.0
"""restartPolicy and backoffLimit of a TFJob as a failurePolicy."""

from collections.abc import Sequence
from typing import Any

from dtjob.api.spec.failure_policy import FailurePolicy
from dtjob.api.spec.failure_rules import RuleAction
from dtjob.api.spec.replica_specs import Role
from dtjob.cli.convert.fields import Fields
from dtjob.cli.convert.findings import Findings
from dtjob.cli.convert.roles import Replicas

NO_LIMIT = 1_000_000
"""Restarts in a row, in place of no limit."""
_PERMANENT = range(1, 128)
"""Exit codes that fail a TFJob at once under ExitCode."""
_OF_LOST_PEERS = (75, 76)
"""Exit codes with which dtjob's trainer reports a lost peer, which a restart repairs."""
_BACKOFF_LIMIT = "spec.runPolicy.backoffLimit"


def failure_policy(replicas: Replicas, limit: int | None, said: Findings, *, supervised: bool) -> Fields:
    """The failurePolicy of these roles. `limit`: the backoffLimit. `supervised`: the trainer runs the program."""
    exit_code = _with(replicas, "ExitCode")
    never = _with(replicas, "Never")
    restarted = [*exit_code, *_with(replicas, "OnFailure"), *_with(replicas, "Always")]
    rules = [*_of_exit_codes(exit_code, supervised), *_of_never(never)]
    _say_of_policies(replicas, never, said)
    policy: Fields = _limits(limit, [role for role in restarted if role is not Role.EVALUATOR], said)
    if exit_code and limit is not None:
        said.warn(_BACKOFF_LIMIT, "TFJob never counts restarts under ExitCode; dtjob counts each against maxRestarts")
    return {**policy, **({"rules": rules} if rules else {})}


def _with(replicas: Replicas, policy: str) -> list[Role]:
    return [role for role, replica in replicas.items() if replica.restart_policy == policy]


def _of_exit_codes(roles: Sequence[Role], supervised: bool) -> list[Fields]:
    """1 to 127 fail the job, 128 and above restart. A disruption is a restart, whatever the exit code."""
    training = [role for role in roles if role is not Role.EVALUATOR]
    values = [code for code in _PERMANENT if not supervised or code not in _OF_LOST_PEERS]
    rules: list[dict[str, Any]] = []
    if training:
        rules.append(
            {
                "action": RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS.value,
                "onPodConditions": [{"type": "DisruptionTarget"}],
                "roles": _names(training),
            }
        )
    if roles:
        codes = {"operator": "In", "values": values}
        rules.append({"action": RuleAction.FAIL_JOB.value, "onExitCodes": codes, "roles": _names(roles)})
    return rules


def _of_never(roles: Sequence[Role]) -> list[Fields]:
    return [{"action": RuleAction.FAIL_JOB.value, "roles": _names(roles)}] if roles else []


def _limits(limit: int | None, restarted: Sequence[Role], said: Findings) -> Fields:
    """The limits of restarts, where some roles restart."""
    if limit is not None:
        most = FailurePolicy().max_restarts_without_progress
        return {"maxRestarts": limit, **({"maxRestartsWithoutProgress": limit} if limit > most else {})}
    if not restarted:
        return {}
    said.note(
        _BACKOFF_LIMIT,
        f"left out, so TFJob restarts without limit; failurePolicy.maxRestartsWithoutProgress is {NO_LIMIT}",
    )
    return {"maxRestartsWithoutProgress": NO_LIMIT}


def _say_of_policies(replicas: Replicas, never: Sequence[Role], said: Findings) -> None:
    for role, replica in replicas.items():
        if replica.restart_policy == "Always" and role is not Role.PS:
            said.warn(
                f"{replica.path}.restartPolicy",
                "Always also restarts a task that ended with exit code 0; in dtjob such a task is done",
            )
    if never:
        said.note(
            f"{replicas[never[0]].path}.restartPolicy",
            "Never, the default of TFJob: every failure fails the job, a drained node too. To survive drains, write "
            "failurePolicy: {maxRestartsWithoutProgress: 0} instead of the rule",
        )


def _names(roles: Sequence[Role]) -> list[str]:
    return [role.value for role in roles]
