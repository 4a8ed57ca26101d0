"""Roles and their replicas."""

from __future__ import annotations

from dtjob.api.replicas import Replicas, Role


def test_each_role_has_its_block() -> None:
    assert {role.value for role in Role} == set(Replicas.model_fields)
    replicas = Replicas.model_validate({"worker": {"count": 3}, "ps": {}})
    counts = {role.value: replica.count for role in Role if (replica := replicas.get(role))}
    assert counts == {"worker": 3, "ps": 1}


def test_tasks_are_listed_with_the_chief_first_and_the_evaluator_last() -> None:
    assert [role.value for role in Role] == ["chief", "worker", "ps", "evaluator"]
