# SPDX-License-Identifier: Apache-2.0
"""The status: JSON to value and back with nothing lost, whatever is stored."""

from typing import Any

import pytest

from dtjob.api.phase import Phase
from dtjob.api.status.status import Status

WHOLE: dict[str, Any] = {
    "observedGeneration": 3,
    "phase": "Restarting",
    "reason": "Error",
    "message": "",
    "conditions": [
        {
            "type": "Running",
            "status": "False",
            "reason": "Error",
            "message": "",
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        }
    ],
    "image": "dtjob-trainer:dev",
    "ready": "2/3",
    "startTime": "2026-11-21T09:00:00Z",
    "completionTime": "2026-11-21T11:00:00Z",
    "replicaStatuses": {"worker": {"replicas": 2, "active": 1, "failed": 1}},
    "progress": {"step": 5, "metrics": [{"name": "loss", "value": "0.25"}], "lastUpdatedTime": "2026-11-21T10:00:00Z"},
    "checkpoint": {"step": 4},
    "evaluation": {"step": 3, "best": {"step": 2, "value": "0.9"}},
    "workers": {"desired": 3, "replicas": 2, "resizing": {"to": 3, "reason": "Room", "message": ""}},
    "goodput": {"percentage": 75, "seconds": {"kept": "3.25", "waitingForPods": "1"}, "steps": {"kept": 7}},
    "restarts": {"total": 2, "causes": {"Error": 2}, "evaluator": 1},
    "lastFailure": {"task": "worker-0", "cause": "Error"},
    "internal": {
        "incident": {
            "startedAt": "2026-11-21T10:00:00Z",
            "cause": "Error",
            "notBefore": "2026-11-21T10:00:10Z",
            "charged": 2,
            "inARow": 2,
            "attempts": {"exceptions": {"worker-0": 1}},
            "mistake": {"exitCode": 1, "exception": "ValueError"},
        },
        "attempts": {"exceptions": {"worker-0": 2}},
        "allCreated": False,
        "goodput": {
            "until": "2026-11-21T10:00:00.120000Z",
            "doing": "training",
            "reported": {"attempt": 0, "kept": "3"},
        },
    },
}


def with_unknown_fields() -> dict[str, Any]:
    """The whole status with a field more in every block that has a form of its own."""
    more = {"stalledSince": ["2026-11-21T10:00:00Z"]}
    blocks = {
        name: {**WHOLE[name], **more}
        for name in ("progress", "restarts", "lastFailure", "internal", "goodput", "workers")
    }
    return {**WHOLE, **blocks, "conditions": [{**WHOLE["conditions"][0], **more}], "suspension": more, "quota": None}


@pytest.mark.parametrize("fields", [WHOLE, with_unknown_fields()], ids=["ours", "with unknown fields"])
def test_all_that_is_known_stays_between_json_and_json_and_nothing_else(fields: dict[str, Any]):
    assert Status.read(fields).to_json() == WHOLE


def test_a_status_that_is_not_empty_has_the_number_of_restarts():
    assert (Status.read({}), Status().to_json()) == (Status(), {})
    assert Status(ready="1/4").to_json() == {"ready": "1/4", "restarts": {"total": 0}}


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    "x",
    "2026-13-41T10:00:00Z",
    [],
    [1],
    [{}],
    {},
    {"step": "x"},
    {"a": {"b": 1}},
)


@pytest.mark.parametrize("field", WHOLE)
def test_a_field_that_cannot_be_read_is_left_out_and_the_others_stay(field: str):
    others = {name: value for name, value in WHOLE.items() if name != field}
    for odd in ODD:
        read = Status.read({**WHOLE, field: odd}).to_json()
        assert {name: read.get(name) for name in others} == others, odd


@pytest.mark.parametrize("field", WHOLE["internal"])
def test_an_odd_field_of_the_internal_status_leaves_the_others_unchanged(field: str):
    for odd in ODD:
        read = Status.read({**WHOLE, "internal": {**WHOLE["internal"], field: odd}}).to_json()
        kept = {name: value for name, value in WHOLE["internal"].items() if name != field}
        assert {name: read["internal"].get(name) for name in kept} == kept, odd


def test_a_condition_that_cannot_be_read_goes_alone():
    read = Status.read({**WHOLE, "conditions": [{"type": "Odd"}, 3, *WHOLE["conditions"], {"status": []}]})
    assert read.to_json()["conditions"] == WHOLE["conditions"]


@pytest.mark.parametrize("stored", ODD)
def test_an_odd_stored_status_raises_no_error(stored: Any):
    assert Status.read(stored).phase is None


def test_times_without_a_zone_are_no_times():
    """They could not be compared with any other."""
    assert Status.read({"startTime": "2026-11-21T10:00:00"}).start_time is None


def test_a_status_with_an_unknown_phase_has_no_phase():
    assert (Status.read({"phase": "Dancing"}).phase, Status.read({"phase": "Failed"}).phase) == (None, Phase.FAILED)
