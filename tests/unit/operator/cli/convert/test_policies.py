# SPDX-License-Identifier: Apache-2.0
"""restartPolicy and backoffLimit: what happens to a failure is what happened under TFJob."""

import pytest

from dtjob.cli.convert.policies import NO_LIMIT
from tests.unit.operator.cli.convert.tfjobs import converted, lines, replica


def policy(**policies: str):
    roles = {name: replica(policy, 2 if name == "Worker" else 1) for name, policy in policies.items()}
    return converted(roles).manifest["spec"]["failurePolicy"]


def test_exit_code_is_as_the_page_says_with_all_codes() -> None:
    disrupted, fails = policy(Worker="ExitCode")["rules"]
    assert disrupted["action"] == "RestartAndIgnoreMaxRestarts"
    assert fails["onExitCodes"] == {"operator": "In", "values": list(range(1, 128))}
    assert fails["roles"] == ["worker"]


def test_each_role_keeps_its_policy() -> None:
    found = policy(Chief="ExitCode", Worker="Never", PS="OnFailure", Evaluator="Never")
    assert [(rule["action"], rule["roles"]) for rule in found["rules"]] == [
        ("RestartAndIgnoreMaxRestarts", ["chief"]),
        ("FailJob", ["chief"]),
        ("FailJob", ["worker", "evaluator"]),
    ]


def test_an_evaluator_under_exit_code_has_no_rule_that_dtjob_refuses() -> None:
    found = policy(Chief="OnFailure", Evaluator="ExitCode")
    assert [rule["roles"] for rule in found["rules"]] == [["evaluator"]]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, {"maxRestarts": 0}),
        (6, {"maxRestarts": 6}),
        (20, {"maxRestarts": 20, "maxRestartsWithoutProgress": 20}),
        (None, {"maxRestartsWithoutProgress": NO_LIMIT}),
    ],
)
def test_the_limit_is_the_one_of_tfjob(limit: int | None, expected: dict[str, int]) -> None:
    result = converted({"Worker": replica(replicas=2)}, {"backoffLimit": limit, "cleanPodPolicy": "All"})
    assert result.manifest["spec"]["failurePolicy"] == expected
    assert lines(result) == {}


def test_a_limit_that_tfjob_ignores_is_said() -> None:
    result = converted({"Worker": replica("ExitCode", 2)})
    assert "never counts" in lines(result)["spec.runPolicy.backoffLimit"]


def test_always_restarts_what_ended_well_which_is_said_of_all_but_ps() -> None:
    result = converted({"Worker": replica("Always", 2), "PS": replica("Always")})
    assert list(lines(result)) == ["spec.tfReplicaSpecs.Worker.restartPolicy"]


def test_the_policy_that_is_left_out_is_never() -> None:
    worker = replica(replicas=2)
    del worker["restartPolicy"]
    result = converted({"Worker": worker}, {"cleanPodPolicy": "All"})
    assert result.manifest["spec"]["failurePolicy"] == {"rules": [{"action": "FailJob", "roles": ["worker"]}]}
    assert any("drain" in line for line in lines(result, warnings=False).values())
