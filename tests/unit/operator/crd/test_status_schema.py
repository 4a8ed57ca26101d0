"""The status' schema: it describes all that a plan writes, and refuses nothing of it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from dtjob.crd.schema import PRESERVE
from dtjob.crd.status_schema import status_schema
from dtjob.objects import topology
from dtjob.objects.defaults import Defaults
from dtjob.plan import goodput, incident, progress, status
from dtjob.plan.children import Children
from dtjob.plan.failure import Cause, Failure
from dtjob.plan.plan import plan
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

REPORT = {
    "task": "chief-0",
    "attempt": 0,
    "incarnation": 0,
    "jobUid": builders.JOB_UID,
    "state": "training",
    "step": 120,
    "totalSteps": 460,
    "epoch": 5,
    "loss": 0.5,
    "metrics": {"accuracy": 0.93, "examples": 4},
    "stepsPerSecond": 41.0,
    "etaSeconds": 8.3,
    "resume": "exact",
    "model": "/checkpoints/model.keras",
    "restoredStep": 60,
    "spent": {"from": 60, "keptSteps": 60, "kept": 1.5, "redoneSteps": 0, "redone": 0, "saving": 0.25},
    "checkpoint": {"step": 100, "time": "2026-11-21T10:00:02.123Z"},
    "evaluation": {"step": 100, "metrics": {"accuracy": 0.95}, "best": {"step": 80, "value": 0.96}},
}
FAILURE = Failure(builders.task("worker-0"), Cause.ERROR, NOW, "digits-worker-0-0", "node-1", "failed", "Traceback", 1)

TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def complaints(value: Any, schema: dict[str, Any], path: str = "status") -> list[str]:
    """What an API server would refuse, or `kubectl explain` says nothing of."""
    if "type" not in schema:
        return [] if schema.get(PRESERVE) and schema.get("description") else [f"{path}: of no type"]
    if not isinstance(value, TYPES[schema["type"]]) or (isinstance(value, bool) and schema["type"] != "boolean"):
        return [f"{path}: {value!r} is no {schema['type']}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    if schema.get("format") == "date-time" and not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value):
        found.append(f"{path}: {value!r} is no time")
    if isinstance(value, list):
        return found + [each for item in value for each in complaints(item, schema["items"], f"{path}[]")]
    if isinstance(value, dict):
        known, further = schema.get("properties", {}), schema.get("additionalProperties")
        found += [f"{path}.{name} is not described" for name in value if name not in known and further is None]
        inside = ((name, known.get(name, further)) for name in value if name in known or further is not None)
        return found + [each for name, part in inside for each in complaints(value[name], part, f"{path}.{name}")]
    return found


def block(*path: str) -> set[str]:
    schema = status_schema()
    for name in path:
        schema = schema["properties"][name]
    return set(schema["properties"])


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ((), status.WRITTEN),
        (("progress",), {*progress.COPIED, "percent", "etaSeconds", "eta", "time"}),
        (("goodput",), set(goodput.WRITTEN)),
        (("restarts",), status.Restarts(1, {"Error": 1}, 1).to_json().keys()),
        (("incident",), set(incident.WRITTEN)),
        (("firstFailure",), FAILURE.to_json().keys()),
    ],
)
def test_every_field_that_is_ever_written_is_described(path: tuple[str, ...], written: set[str]) -> None:
    """Also one that no history of these tests comes to: who adds a field describes it."""
    assert set(written) - block(*path) == set()


def test_tasks_by_role_and_state_are_described() -> None:
    by_role = status_schema()["properties"]["replicaStatuses"]["additionalProperties"]
    assert set(by_role["properties"]) == {"replicas", *status.COUNTED_AS.values()}


def histories() -> list[dict[str, Any]]:
    """The statuses of a job that has seen much, one after the other."""
    job = builders.job(evaluator=True, image=None, checkpoint={"storage": {"volume": {"emptyDir": {}}}})
    written, children, now = [], Children(), NOW
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({one.id: builders.running() for one in topology.tasks(job)}, {"chief-0": REPORT, "evaluator-0": REPORT}),
        ({"worker-1": builders.ended(1, message="Traceback")}, {"chief-0": REPORT}),
        ({"worker-0": builders.out_of_memory()}, {"chief-0": {**REPORT, "step": 130}}),
        ({"evaluator-0": builders.evicted()}, {}),
        ({one.id: builders.waiting("ErrImagePull") for one in topology.tasks(job)}, {}),
        ({"chief-0": builders.ended(0, message='{"step": 460}')}, {}),
    ]
    for number, (states, reports) in enumerate(steps):
        attempts = job.status.get("attempts", {})
        pods = [
            builders.pod(job, one.id, states.get(one.id, builders.running()), attempt=attempts.get(one.id, 0))
            for one in topology.tasks(job)
        ]
        children = Children(tuple(pods) if number else (), reports, {"Pod/a": "quota"} if number == 1 else {})
        now = builders.at(100 * number)
        made = plan(job, children, now, Defaults(image="dtjob-trainer:dev"))
        if made.status is not None:
            written.append(made.status)
            job = builders.with_status(job, made.status)
    return written


def test_what_plans_write_is_described_and_taken() -> None:
    written = histories()
    seen = {name for one in written for name in one}
    assert seen >= {
        "phase",
        "conditions",
        "progress",
        "checkpoint",
        "evaluation",
        "restarts",
        "firstFailure",
        "incident",
    }
    assert {one["phase"] for one in written} >= {"Pending", "Running", "Restarting", "Succeeded"}
    assert [complaints(one, status_schema()) for one in written] == [[] for _ in written]


ODD = (
    *(
        None,
        True,
        -1,
        1.5,
        2**70,
        math.nan,
        math.inf,
        "",
        "x",
        "2026-11-21T10:00:00",
        "2026-13-41T10:00:00Z",
        [],
        [1],
        {},
    ),
    {"step": 1.5},
    {"step": 1, "time": "now"},
    {"step": 1, "metrics": 3, "best": 4},
    {"step": 1, "metrics": {"a": "b"}, "best": {"step": "x", "value": []}},
)


@pytest.mark.parametrize("field", REPORT)
def test_whatever_a_report_says_an_api_server_takes_the_status(field: str) -> None:
    """Refused once, it would be refused at each try, and nothing would ever be done for the job again."""
    job = builders.job(evaluator=True)
    pods = tuple(builders.all_pods(job).values())
    for odd in ODD:
        report = {**REPORT, field: odd}
        made = plan(job, Children(pods, {"chief-0": report, "evaluator-0": report}), NOW).status
        assert made is not None
        assert complaints(json.loads(json.dumps(made, allow_nan=False)), status_schema()) == [], odd


def test_every_block_takes_more_than_is_described() -> None:
    """A newer operator's status must outlive an older definition, which would prune it."""

    def closed(schema: dict[str, Any]) -> list[dict[str, Any]]:
        further = schema.get("additionalProperties")
        parts = [*schema.get("properties", {}).values(), schema.get("items"), further]
        kept = schema.get(PRESERVE) or further is not None or schema["type"] != "object"
        return [*([] if kept else [schema]), *(each for part in parts if part for each in closed(part))]

    assert closed(status_schema()) == []


def test_conditions_are_merged_by_their_type() -> None:
    conditions = status_schema()["properties"]["conditions"]
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])
    assert conditions["items"]["required"] == ["type", "status"]
