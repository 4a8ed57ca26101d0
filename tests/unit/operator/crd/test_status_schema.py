"""The status' schema: it describes what a plan writes, and refuses nothing of it."""

from __future__ import annotations

from typing import Any

from dtjob.crd.status_schema import status_schema
from dtjob.plan.children import Children
from dtjob.plan.plan import plan
from tests.unit.operator import builders

REPORT = {
    "task": "chief-0",
    "attempt": 0,
    "jobUid": builders.JOB_UID,
    "state": "training",
    "step": 120,
    "totalSteps": 460,
    "loss": 0.5,
    "stepsPerSecond": 41.0,
    "etaSeconds": 8.3,
    "checkpoint": {"step": 100, "time": "2026-11-21T10:00:02Z"},
}
OWN_NOTES = {"status.incident", "status.allCreated"}
"""What a plan keeps for the next one, and tells nobody."""


def undescribed(value: Any, schema: dict[str, Any], path: str = "status") -> list[str]:
    """Fields that `kubectl explain` says nothing of, in blocks whose fields are described."""
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    known = schema["properties"]
    inside = [
        each for name in value if name in known for each in undescribed(value[name], known[name], f"{path}.{name}")
    ]
    return [f"{path}.{name}" for name in value if name not in known] + inside


def test_what_a_plan_writes_is_described() -> None:
    job = builders.job()
    pods = builders.all_pods(job)
    pods["worker-1"]["status"] = builders.ended(1)
    children = Children(tuple(pods.values()), {"chief-0": REPORT})
    status = plan(job, children, builders.NOW).status
    assert status is not None
    assert {"phase", "conditions", "progress", "restarts", "firstFailure"} <= status.keys()
    assert set(undescribed(status, status_schema())) <= OWN_NOTES


def test_every_block_takes_more_than_is_described() -> None:
    """A newer operator's status must outlive an older definition, which would prune it."""

    def closed(schema: dict[str, Any]) -> list[dict[str, Any]]:
        inside = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
        kept = schema.get("x-kubernetes-preserve-unknown-fields") or schema["type"] != "object"
        return [*([] if kept else [schema]), *(each for part in inside for each in closed(part))]

    assert closed(status_schema()) == []


def test_conditions_are_merged_by_their_type() -> None:
    conditions = status_schema()["properties"]["conditions"]
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])
    assert conditions["items"]["required"] == ["type", "status"]
