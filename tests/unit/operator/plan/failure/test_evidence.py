# SPDX-License-Identifier: Apache-2.0
"""Evidence: what each kind of a pod's status shows, and which rule matches it."""

# ruff: noqa: E501 (a table reads best with one case a line)

from __future__ import annotations

from typing import Any

import pytest

from dtjob.api.spec.failure_rules import FailureRule
from dtjob.plan.failure.evidence import evidence_of
from dtjob.plan.failure.rules import match
from tests.unit.operator import builders
from tests.unit.operator.ruled import TARGET

IN = {"operator": "In", "values": [1, 42]}
NOT_IN = {"operator": "NotIn", "values": [1, 42]}


def init(status: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """The status of a pod of which an init container is so."""
    training = [{"name": "tensorflow", "state": {"waiting": {"reason": "PodInitializing"}}}]
    return {**status, "initContainerStatuses": [{"name": "fetch", "state": end}], "containerStatuses": training}


INIT_42 = init({"phase": "Failed"}, {"terminated": {"exitCode": 42, "reason": "Error"}})
UNSEEN = builders.ended(137, reason="ContainerStatusUnknown")


@pytest.mark.parametrize(
    ("criterion", "status", "matched"),
    [
        ({"onExitCodes": IN}, builders.ended(42), "exit code 42"),
        ({"onExitCodes": IN}, builders.ended(2), ""),
        ({"onExitCodes": IN}, INIT_42, "exit code 42"),
        ({"onExitCodes": NOT_IN}, builders.ended(2), "exit code 2"),
        ({"onExitCodes": NOT_IN}, builders.ended(42), ""),
        ({"onExitCodes": NOT_IN}, builders.ended(0), ""),  # told to end: 0 is no failure of its own
        ({"onExitCodes": NOT_IN}, builders.evicted(), ""),  # no container ended
        ({"onExitCodes": NOT_IN}, UNSEEN, ""),  # the kubelet made it up
        ({"onExitCodes": NOT_IN}, builders.running(), ""),
        ({"onSignals": ["SIGSEGV"]}, builders.ended(139), "signal SIGSEGV"),
        ({"onSignals": ["SIGSEGV"]}, builders.ended(1, signal=11), "signal SIGSEGV"),
        ({"onSignals": ["SIGSEGV", "SIGBUS"]}, builders.ended(137), ""),
        ({"onSignals": ["SIGKILL"]}, UNSEEN, ""),
        ({"onReasons": ["OOMKilled"]}, builders.out_of_memory(), "reason OOMKilled"),
        ({"onReasons": ["OOMKilled"]}, builders.ended(137, reason="Error"), ""),
        ({"onReasons": ["Error", "Evicted"]}, builders.evicted(), "reason Evicted"),
        ({"onReasons": ["ContainerStatusUnknown"]}, UNSEEN, "reason ContainerStatusUnknown"),
        ({"onReasons": ["OutOfcpu"]}, builders.rejected(), "reason OutOfcpu"),
        ({"onReasons": ["ErrImagePull", "ImagePullBackOff"]}, builders.waiting("ImagePullBackOff"), "reason ImagePullBackOff"),
        ({"onReasons": ["ErrImagePull"]}, init({"phase": "Pending"}, {"waiting": {"reason": "ErrImagePull"}}), "reason ErrImagePull"),
        ({"onPodConditions": [TARGET]}, builders.disrupted("PreemptionByScheduler"), "pod condition DisruptionTarget=True (PreemptionByScheduler)"),
        ({"onPodConditions": [{**TARGET, "reason": "PreemptionByScheduler"}]}, builders.disrupted(), ""),
        ({"onPodConditions": [{**TARGET, "status": "False"}]}, builders.disrupted(), ""),
        ({"onPodConditions": [{"type": "Other"}, {**TARGET, "reason": "EvictionByEvictionAPI"}]}, builders.disrupted(), "pod condition DisruptionTarget=True (EvictionByEvictionAPI)"),
        ({"roles": ["worker"]}, builders.evicted(), "any failure of role worker"),
    ],
)  # fmt: skip
def test_each_criterion_of_a_rule_matches_its_own_evidence(
    criterion: dict[str, Any], status: dict[str, Any], matched: str
):
    pod = builders.pod(builders.job(), "worker-0", status)
    rule = FailureRule.model_validate({"action": "FailJob", **criterion})
    assert match(rule, evidence_of(pod), builders.task("worker-0").role) == matched
