# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.messages: what goes over the network comes back whole, or is named."""

from dataclasses import replace

import pytest

from dtjob_trainer.rendezvous.messages import Answer, Registration
from tests.unit.trainer.rendezvous.groups import registration


def test_registrations_and_answers_survive_json() -> None:
    each = registration("worker-1", "running", attempt=2, generation=3)
    each = replace(each, step=17, crash="SIGSEGV", stalled=True, stopped=True, doing="data")
    assert Registration.from_json(each.to_json()) == each
    answer = Answer("go", 3, "worker-1 was lost", ("worker-1",), (), "s", straggler="worker-1", chief_attempt=2)
    assert Answer.from_json(answer.to_json()) == answer


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"attempt": "1"}, "attempt must be of type int"),
        ({"attempt": True}, "attempt must be of type int"),
        ({"generation": 1.5}, "generation must be of type int"),
        ({"stalled": 1}, "stalled must be of type bool"),
        ({"doing": None}, "doing must be of type str"),
        ({"phase": "asleep"}, "phase must be"),
        ({"uid": None}, "uid"),
        ({"attempt": 10**400}, "attempt must be from 0 to"),
        ({"incarnation": -1}, "incarnation must be from 0 to"),
        ({"supervisor": "x" * 300}, "supervisor must have at most"),
        ({"crash": "x" * 300}, "crash must have at most"),
    ],
)
def test_a_malformed_registration_is_named(change: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Registration.from_json(registration("worker-1").to_json() | change)


@pytest.mark.parametrize("body", [None, [], "uid"])
def test_a_registration_is_an_object(body: object) -> None:
    with pytest.raises(ValueError, match="the body must be a JSON object"):
        Registration.from_json(body)


ANSWER = Answer("go").to_json()


@pytest.mark.parametrize(
    "body", [{}, {"answer": "go"}, {**ANSWER, "generation": None}, {**ANSWER, "chiefAttempt": 1.5}]
)
def test_an_incomplete_answer_is_an_error(body: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError)):
        Answer.from_json(body)


@pytest.mark.parametrize("body", [True, [], "ok", 1, None, {"answer": "go", "generation": float("inf")}])
def test_an_answer_of_another_service_is_an_error(body: object) -> None:
    """The chief's name may lead to an address that is another's by now."""
    with pytest.raises((KeyError, TypeError, ValueError)):
        Answer.from_json(body)  # type: ignore[arg-type]
