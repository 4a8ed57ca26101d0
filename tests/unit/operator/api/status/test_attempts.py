# SPDX-License-Identifier: Apache-2.0
"""The attempts of a job's tasks and which have finished, and how few words that needs."""

from typing import Any

import pytest

from dtjob.api.status.attempts import MOST_TASKS, PLAIN_UP_TO, Attempts
from dtjob.api.status.internal import Internal
from dtjob.api.status.status import Status

SMALL = [f"worker-{index}" for index in range(PLAIN_UP_TO)]
BIG = [f"worker-{index}" for index in range(4000)]


def test_a_task_without_an_entry_was_never_restarted():
    found = Attempts(exceptions={"worker-1": 2})
    assert [found.of(id_) for id_ in ("worker-1", "worker-2")] == [2, 0]
    assert found.to_json() == {"exceptions": {"worker-1": 2}}


def test_up_to_a_hundred_tasks_each_have_an_entry():
    assert Attempts().bumped(SMALL, SMALL).to_json() == {"exceptions": dict.fromkeys(SMALL, 1)}


def test_a_big_group_has_one_entry_and_its_exceptions():
    everyone = ["chief-0", *BIG, "evaluator-0"]
    first = Attempts(exceptions={"worker-7": 1}).bumped(["chief-0", *BIG], everyone)
    assert first.to_json() == {"others": 1, "exceptions": {"worker-7": 2, "evaluator-0": 0}}
    second = first.bumped(["chief-0", *BIG], everyone)
    assert second.to_json() == {"others": 2, "exceptions": {"worker-7": 3, "evaluator-0": 0}}
    third = second.bumped(["worker-3", "evaluator-0"], everyone)
    assert third.to_json() == {"others": 2, "exceptions": {"worker-7": 3, "evaluator-0": 1, "worker-3": 3}}
    for attempts in (first, second, third):
        assert Attempts.model_validate(attempts.to_json()) == attempts


def test_every_task_is_at_the_attempt_that_was_counted_for_it():
    attempts, expected = Attempts(), dict.fromkeys(BIG, 0)
    for bumped in (BIG[:60], BIG[30:3000], BIG, BIG[3999:], BIG[:1500], BIG[1000:]):
        attempts = Attempts.model_validate(attempts.bumped(bumped, BIG).to_json())
        expected |= {id_: expected[id_] + 1 for id_ in bumped}
        assert {id_: attempts.of(id_) for id_ in BIG} == expected


@pytest.mark.parametrize(
    ("tasks", "entries"),
    [
        ({"worker-7": 0}, [{"role": "worker", "attempt": 0, "indexes": "7"}]),
        (
            {"worker-10": 2, "worker-2": 2, "worker-3": 2, "worker-4": 2, "worker-0": 0, "evaluator-0": 1},
            [
                {"role": "evaluator", "attempt": 1, "indexes": "0"},
                {"role": "worker", "attempt": 0, "indexes": "0"},
                {"role": "worker", "attempt": 2, "indexes": "2-4,10"},
            ],
        ),
        ({f"worker-{index}": 1 for index in range(4000)}, [{"role": "worker", "attempt": 1, "indexes": "0-3999"}]),
    ],
)
def test_finished_tasks_are_written_in_ranges(tasks: dict[str, int], entries: list[dict[str, Any]]):
    assert Internal(finished=tasks).to_json() == {"finished": entries}
    assert Internal.model_validate({"finished": entries}).finished == tasks


@pytest.mark.parametrize(
    "entries",
    [
        [{"role": "worker", "tasks": [1]}],
        [{"role": "a", "attempt": 0, "indexes": "0..3"}],
        [{"role": "worker", "attempt": 0, "indexes": "0-999999999999"}],
        [{"role": "worker", "attempt": 0, "indexes": ",".join(["0-99999"] * 100_000)}],
        [{"role": "worker", "attempt": 0, "indexes": "0-99999"}] * 30_000,
        {"worker": 0},
        {"worker-x": 0},
        {"worker--1": 0},
    ],
    ids=lambda entries: str(entries)[:60],
)
def test_finished_tasks_of_another_form_are_left_out(entries: Any):
    """Also those that nobody could count to the end: whoever may write a status must not stop the operator."""
    assert Status.read({"internal": {"finished": entries, "allCreated": True}}).internal == Internal(all_created=True)


def test_more_tasks_than_a_job_can_have_are_left_out() -> None:
    """Nothing bounds what somebody writes into `status.internal`, and the API server takes no more than 1.5 MB."""
    many = {f"worker-{index}": 1 for index in range(MOST_TASKS + 1)}
    assert Status.read({"internal": {"attempts": {"exceptions": many}, "allCreated": True}}) == Status(
        internal=Internal(all_created=True)
    )
