# SPDX-License-Identifier: Apache-2.0
"""Roles and their tasks."""

from dtjob.api.spec.replica_specs import ReplicaSpecs, Role


def test_each_role_has_its_block() -> None:
    assert {role.value for role in Role} == set(ReplicaSpecs.model_fields)
    specs = ReplicaSpecs.model_validate({"chief": {}, "worker": {"replicas": 3}, "ps": {}})
    counts = {role.value: block.replicas for role in Role if (block := specs.get(role))}
    assert counts == {"chief": 1, "worker": 3, "ps": 1}


def test_tasks_are_listed_with_the_chief_first_and_the_evaluator_last() -> None:
    assert [role.value for role in Role] == ["chief", "worker", "ps", "evaluator"]
