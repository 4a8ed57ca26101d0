# SPDX-License-Identifier: Apache-2.0
"""What of a report gets into a status, whatever the report is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.crd.status_schema import status_schema
from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.report import DEEPEST, LONGEST_TEXT, MOST_NUMBERS, MOST_TEXTS, bounded, readable
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW

GOOD = {
    "task": "chief-0", "jobUid": "u", "step": 120, "totalSteps": 460, "epoch": 5, "loss": 0.31, "etaSeconds": 8.3,
    "metrics": {"accuracy": 0.93}, "checkpoint": {"step": 100, "time": "2026-11-21T10:00:02Z"}, "resume": "exact",
    "evaluation": {"step": 100, "metrics": {"accuracy": 0.95}, "best": {"step": 80, "value": 0.96}},
}  # fmt: skip


def test_a_report_as_supervisors_make_them_stays_as_it_is() -> None:
    assert bounded(GOOD) == readable(GOOD) == GOOD


def test_lists_and_what_is_too_many_go_and_the_steps_stay() -> None:
    metrics = {"matrix": [[0.5] * 300] * 300, **{f"metric-{number}": 1.0 for number in range(200)}}
    made = readable({**GOOD, "metrics": metrics, "checkpoint": {"step": 9, "files": ["a"]}})
    assert (made["step"], made["loss"], made["checkpoint"]) == (120, 0.31, {"step": 9})
    assert "matrix" not in made["metrics"]
    assert 40 < len(made["metrics"]) < MOST_NUMBERS
    assert list(made["metrics"])[:2] == ["metric-0", "metric-1"]


def test_texts_and_names_are_bounded() -> None:
    made = bounded({"model": "m" * 1000, "x" * 1000: 1, **{f"text-{number}": "t" for number in range(100)}})
    assert made["model"] == "m" * (LONGEST_TEXT - 1) + "…"
    assert len(made) == MOST_TEXTS
    assert bounded({"model": "\ud800"})["model"] == "?"


def test_depth_is_bounded() -> None:
    value: Any = {"step": 1}
    for _ in range(DEEPEST):
        value = {"step": 1, "inner": value}
    assert json.dumps(bounded(value)).count("inner") == DEEPEST - 1


@pytest.mark.parametrize(
    ("report", "kept"),
    [
        ({"step": 3.0}, {"step": 3}),
        ({"step": 3.5, "totalSteps": True}, {}),
        ({"step": 10**400, "loss": 2**63}, {}),
        ({"step": 3, "epoch": "two", "resume": 4, "model": {"a": 1}}, {"step": 3}),
        ({"etaSeconds": 1e300, "stepsPerSecond": "fast"}, {}),
        ({"metrics": {"a": 1, "b": "x", "c": {"d": 1}, "e": None}}, {"metrics": {"a": 1}}),
        ({"metrics": [1, 2]}, {}),
        ({"checkpoint": {"step": 5, "time": "yesterday"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": "2026-13-41T10:00:02Z"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": "2026-11-21"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": 7}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": "5"}}, {}),
    ],
)
def test_parts_of_a_report_that_an_api_server_would_refuse_are_removed(
    report: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert readable(report) == kept


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("step", "time", "a")), inner),
    max_leaves=5,
)
_NAMES = ("step", "totalSteps", "epoch", "loss", "metrics", "stepsPerSecond", "etaSeconds", "checkpoint", "evaluation")
_REPORTS = st.dictionaries(st.sampled_from((*_NAMES, "resume", "model")), _VALUES)


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether the API server would take the value by this schema."""
    match schema["type"]:
        case "object":
            described = schema.get("properties", {})
            return isinstance(value, dict) and all(
                fits(one, described[n]) for n, one in value.items() if n in described
            )
        case "integer":
            return isinstance(value, int) and -(2**63) <= value < 2**63
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, str)


@given(_REPORTS, _REPORTS)
def test_no_report_makes_a_status_that_is_refused(chief: dict[str, Any], evaluator: dict[str, Any]) -> None:
    status = plan(builders.job(evaluator=True), Children((), {"chief-0": chief, "evaluator-0": evaluator}), NOW).status
    assert status is not None
    text = json.dumps(status, allow_nan=False)
    assert len(text) < 200_000
    schema = status_schema()["properties"]
    for name in ("progress", "checkpoint", "evaluation"):
        assert fits(status.get(name, {}), schema[name]), status[name]
