# SPDX-License-Identifier: Apache-2.0
"""What of a report gets into a status, whatever the report is."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.plan.plan import plan
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.report import LONGEST_TEXT, MOST_ENTRIES, read_report
from tests.unit.fuzzed import fuzzed
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW
from tests.unit.operator.simulation.api import refusal

GOOD = {
    "task": "chief-0", "jobUid": "u", "step": 120, "totalSteps": 460, "epoch": 5, "loss": 0.31, "etaSeconds": 8.3,
    "metrics": {"accuracy": 0.93}, "checkpoint": {"step": 100, "time": "2026-11-21T10:00:02Z"}, "resume": "exact",
    "evaluation": {"step": 100, "metrics": {"accuracy": 0.95}, "best": {"step": 80, "value": 0.96}},
}  # fmt: skip


CONTRACT = (Path(__file__).parents[5] / "docs" / "contribute" / "contract.md").read_text()
EXAMPLE: dict[str, Any] = json.loads(CONTRACT.split("## `/status`")[1].split("```json")[1].split("```")[0])
NOT_READ = ("pid", "trainingPid", "restartsInPlace", "writing", "exception", "doing")
"""What the contract names for other readers."""


def test_a_report_as_supervisors_make_them_stays_as_it_is() -> None:
    assert read_report(GOOD) == GOOD
    wanted = {name: value for name, value in EXAMPLE.items() if name not in NOT_READ}
    assert read_report(EXAMPLE) == {**wanted, "lastRestart": {"time": EXAMPLE["lastRestart"]["time"]}}


def test_lists_and_what_is_too_many_go_and_the_steps_stay() -> None:
    metrics = {"matrix": [[0.5] * 300] * 300, **{f"metric-{number}": 1.0 for number in range(200)}}
    made = read_report({**GOOD, "metrics": metrics, "checkpoint": {"step": 9, "files": ["a"]}})
    assert (made["step"], made["loss"], made["checkpoint"]) == (120, 0.31, {"step": 9})
    assert list(made["metrics"]) == [f"metric-{number}" for number in range(MOST_ENTRIES)]


def test_texts_and_names_are_bounded() -> None:
    made = read_report({"model": "m" * 1000, "x": 1, "metrics": {"x" * 1000: 1, "\ud800": 2}})
    assert made == {"model": "m" * (LONGEST_TEXT - 1) + "…", "metrics": {"?": 2}}
    assert read_report({"model": "\ud800"})["model"] == "?"


@pytest.mark.parametrize(
    ("report", "kept"),
    [
        ({"step": 3.0}, {"step": 3}),
        ({"step": 3.5, "totalSteps": True}, {}),
        ({"step": 10**400, "loss": 2**63}, {}),
        ({"step": 3, "epoch": "two", "resume": 4, "model": {"a": 1}}, {"step": 3}),
        ({"etaSeconds": 1e300, "stepsPerSecond": "fast"}, {}),
        ({"inputWait": 1.01, "examplesPerSecond": "many"}, {}),
        ({"inputWait": -0.01, "examplesPerSecond": 5}, {"examplesPerSecond": 5}),
        ({"metrics": {"a": 1, "b": "x", "c": {"d": 1}, "e": None, "f": float("nan")}}, {"metrics": {"a": 1}}),
        ({"metrics": [1, 2]}, {}),
        ({"checkpoint": {"step": 5, "time": "yesterday"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": "2026-13-41T10:00:02Z"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": "2026-11-21"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": 7}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": "0001-01-01T00:00:00+14:00"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": "9999-12-31T23:59:59-14:00"}}, {"checkpoint": {"step": 5}}),
        ({"step": 2**31, "stage": 2**31, "incarnation": 2**31, "attempt": -(2**31) - 1}, {"step": 2**31}),
        ({"stage": 2**31 - 1}, {"stage": 2**31 - 1}),
        ({"checkpoint": {"step": "5"}}, {}),
        ({"checkpoint": {"step": 5, "time": "2026-11-31T10:00:00Z"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": 3, "evaluation": "none"}, {}),
        (
            {"evaluation": {"step": 5, "best": {"step": 4, "value": "x"}}},
            {"evaluation": {"step": 5, "best": {"step": 4}}},
        ),
        ({"spent": {"kept": float("nan"), "from": 1.5, "saving": 2, "more": 1}}, {"spent": {"saving": 2}}),
        ({"step": -4, "restoredStep": -4, "etaSeconds": -1, "spent": {"kept": -2.5}}, {"spent": {}}),
        ({"spent": "all of it", "message": ["words"], "silent": {"worker-1": "0"}}, {"silent": {}}),
        ({"lastRestart": {"time": "soon"}, "stepped": "yes"}, {"lastRestart": {}}),
        ({"step": float("inf"), "loss": float("nan"), "stepped": False}, {"stepped": False}),
    ],
)
def test_parts_of_a_report_that_an_api_server_would_refuse_are_removed(report, kept):
    assert read_report(report) == kept


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(("step", "time", "a")), inner),
    max_leaves=5,
)
_NAMES = (
    *(*GOOD, "stage", "stepsPerSecond", "examplesPerSecond", "inputWait", "model"),
    *("attempt", "incarnation", "state", "restoredStep", "spent"),
)
_REPORTS = st.dictionaries(st.sampled_from(_NAMES), _VALUES)


@pytest.mark.parametrize(
    ("name", "value"), [("step", 2**63), ("stage", 2**31), ("percentage", 101), ("stepsPerSecond", "1" * 65)]
)
def test_the_simulated_api_server_refuses_what_is_out_of_bounds(name: str, value: int | str) -> None:
    assert refusal({"progress": {"step": 1, name: value}}) is not None


@fuzzed(30)
@given(_REPORTS, _REPORTS)
def test_no_report_makes_a_status_that_is_refused(chief: dict[str, Any], evaluator: dict[str, Any]) -> None:
    """Whatever listens on the status port, or writes a termination message, the job goes on."""
    job = builders.job(evaluator=True)
    finished = builders.pod(job, "chief-0", builders.ended(0, message=json.dumps(chief)))
    for children in (Children((), {"chief-0": chief, "evaluator-0": evaluator}), Children((finished,))):
        status = plan(job, children, NOW).status
        assert status is not None
        assert refusal(status) is None
