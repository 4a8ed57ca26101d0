# SPDX-License-Identifier: Apache-2.0
"""schedulingPolicy: gangs and classes as far as dtjob has them, and a line for the rest."""

from typing import Any

import pytest

from tests.unit.operator.cli.convert.tfjobs import converted, lines, replica

_PATH = "spec.runPolicy.schedulingPolicy"
_ROLES = {"Chief": replica(), "Worker": replica(replicas=2), "Evaluator": replica()}


def placed(policy: dict[str, Any], roles: dict[str, Any] | None = None):
    result = converted(roles or _ROLES, {"backoffLimit": 1, "cleanPodPolicy": "All", "schedulingPolicy": policy})
    return result.manifest["spec"].get("scheduling"), lines(result)


def test_a_queue_is_volcanos() -> None:
    assert placed({"queue": "a", "minAvailable": 3}) == (
        {"gang": {"provider": "Volcano", "volcano": {"queue": "a"}}},
        {},
    )


def test_a_timeout_is_coschedulings() -> None:
    gang = {"provider": "Coscheduling", "coscheduling": {"scheduleTimeoutSeconds": 9}}
    assert placed({"scheduleTimeoutSeconds": 9}) == ({"gang": gang}, {})
    found, said = placed({"scheduleTimeoutSeconds": 9, "queue": "a"})
    assert "coscheduling" not in found["gang"]
    assert f"{_PATH}.scheduleTimeoutSeconds" in said


def test_the_scheduler_of_the_pods_says_the_provider() -> None:
    roles = {"Worker": replica(replicas=2)}
    roles["Worker"]["template"]["spec"]["schedulerName"] = "scheduler-plugins-scheduler"
    found, said = placed({"minAvailable": 2, "queue": "a"}, roles)
    assert found["gang"]["provider"] == "Coscheduling"
    assert list(said) == [f"{_PATH}.queue"]


@pytest.mark.parametrize(("wanted", "words"), [(3, ""), (4, ""), (9, ""), (0, "at least 1"), (2, "minReplicas")])
def test_a_gang_is_all_pods_that_train(wanted: int, words: str) -> None:
    found, said = placed({"minAvailable": wanted, "queue": "a"})
    assert "minAvailable" not in found["gang"]
    assert words in said.get(f"{_PATH}.minAvailable", "")
    assert bool(words) is (f"{_PATH}.minAvailable" in said)


def test_more_than_all_pods_never_started() -> None:
    found, said = placed({"minAvailable": 3, "queue": "a"}, {"Worker": replica(replicas=2)})
    assert "minAvailable" not in found["gang"]
    assert "never started" in said[f"{_PATH}.minAvailable"]


def test_a_single_pod_needs_no_gang() -> None:
    found, said = placed({"minAvailable": 1, "queue": "a"}, {"Worker": replica()})
    assert found is None
    assert set(said) == {f"{_PATH}.minAvailable", f"{_PATH}.queue"}


def test_a_class_that_a_template_names_stays() -> None:
    roles = {"Worker": replica(replicas=2), "Chief": replica()}
    roles["Chief"]["template"]["spec"]["priorityClassName"] = "other"
    result = converted(
        roles, {"backoffLimit": 1, "cleanPodPolicy": "All", "schedulingPolicy": {"priorityClass": "high"}}
    )
    blocks = result.manifest["spec"]["replicaSpecs"]
    classes = {role: block["template"]["spec"]["priorityClassName"] for role, block in blocks.items()}
    assert classes == {"chief": "other", "worker": "high"}
    assert f"{_PATH}.priorityClass" in lines(result)


def test_fields_that_only_a_pod_group_of_tfjob_has_are_named() -> None:
    assert list(placed({"minResources": {"cpu": 1}, "other": 1})[1]) == [f"{_PATH}.other", f"{_PATH}.minResources"]
