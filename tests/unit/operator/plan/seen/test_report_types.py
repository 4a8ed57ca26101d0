# SPDX-License-Identifier: Apache-2.0
"""What of a report has the types of the contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dtjob.plan.seen.report_types import of_the_contract

CONTRACT = (Path(__file__).parents[5] / "docs" / "contract.md").read_text()
EXAMPLE: dict[str, Any] = json.loads(CONTRACT.split("## `/status`")[1].split("```json")[1].split("```")[0])


def test_the_contracts_own_example_is_taken_whole() -> None:
    assert of_the_contract(EXAMPLE) == {**EXAMPLE, "checkpoint": {**EXAMPLE["checkpoint"]}}


@pytest.mark.parametrize(
    ("odd", "kept"),
    [
        ({"step": 1.5, "epoch": True, "totalSteps": 2**60}, {}),
        ({"loss": "low", "etaSeconds": None, "stepsPerSecond": 3}, {"stepsPerSecond": 3}),
        ({"model": 3, "resume": ["exact"], "metrics": [1]}, {}),
        ({"checkpoint": {"step": 5, "time": "yesterday", "more": "x" * 9}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": {"step": 5, "time": "2026-11-31T10:00:00Z"}}, {"checkpoint": {"step": 5}}),
        ({"checkpoint": 3, "evaluation": "none"}, {}),
        (
            {"evaluation": {"step": 5, "best": {"step": 4, "value": "x"}}},
            {"evaluation": {"step": 5, "best": {"step": 4}}},
        ),
        ({"spent": {"kept": float("nan"), "from": 1.5, "saving": 2, "more": 1}}, {"spent": {"saving": 2}}),
        ({"spent": "all of it"}, {}),
        ({"message": ["kept as it is"]}, {"message": ["kept as it is"]}),
    ],
)
def test_fields_of_a_report_with_another_type_are_left_out(odd: dict[str, Any], kept: dict[str, Any]) -> None:
    assert of_the_contract(odd) == kept
