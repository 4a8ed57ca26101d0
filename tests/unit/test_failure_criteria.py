# SPDX-License-Identifier: Apache-2.0
"""Each criterion of a failure rule, such as `onSignals`, is known wherever rules are read."""

from typing import Any

import pytest

from dtjob.api.spec.failure_rules import FailureRule
from dtjob.api.spec.replica_specs import Role
from dtjob.cli.explain.rules import criterion
from dtjob.crd.answers.problems import problems
from dtjob.objects.pod.environment import restart_signals
from dtjob.plan.failure.cause import Evidence
from dtjob.plan.failure.rules import match
from tests.refusals.manifests import job
from tests.unit.operator import builders

ABOUT_NO_CRASH: dict[str, Any] = {
    "onExitCodes": {"operator": "In", "values": [42]},
    "onSignals": ["SIGHUP"],
    "onReasons": ["ImagePullBackOff"],
    "onPodConditions": [{"type": "DisruptionTarget"}],
}
"""A value of each criterion, which matches no program that a signal such as SIGSEGV ends."""
CRITERIA = sorted(field.alias or "" for name, field in FailureRule.model_fields.items() if name.startswith("on_"))


def rule(name: str) -> dict[str, Any]:
    return {"action": "Restart", name: ABOUT_NO_CRASH[name]}


def test_each_criterion_of_the_model_is_tested() -> None:
    assert sorted(ABOUT_NO_CRASH) == CRITERIA


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_does_not_match_a_pod_that_shows_nothing(name: str) -> None:
    assert match(FailureRule.model_validate(rule(name)), Evidence(), Role.WORKER) == ""


@pytest.mark.parametrize("name", CRITERIA)
def test_a_rule_about_something_else_leaves_crashes_to_the_supervisor(name: str) -> None:
    with_rule = builders.job(failurePolicy={"rules": [rule(name)]})
    task = builders.task("worker-0")
    assert restart_signals(with_rule, task) == restart_signals(builders.job(), task) != ()


@pytest.mark.parametrize("name", CRITERIA)
def test_dtjob_explain_names_what_a_criterion_matches(name: str) -> None:
    assert criterion(FailureRule.model_validate(rule(name))) != "any failure"


@pytest.mark.parametrize("name", CRITERIA)
def test_a_rule_has_one_criterion_and_needs_no_role(name: str) -> None:
    other = next(one for one in CRITERIA if one != name)
    assert problems(job(failurePolicy={"rules": [rule(name)]})) == []
    assert problems(job(failurePolicy={"rules": [rule(name) | rule(other)]})) != []
