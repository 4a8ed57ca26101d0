"""The attempts of a job's tasks, and how few words they need."""

from __future__ import annotations

from dtjob.plan.attempts import PLAIN_UP_TO, Attempts

SMALL = [f"worker-{index}" for index in range(PLAIN_UP_TO)]
BIG = [f"worker-{index}" for index in range(4000)]


def test_a_task_without_an_entry_was_never_restarted():
    found = Attempts.from_json({"worker-1": 2})
    assert [found.of(id_) for id_ in ("worker-1", "worker-2")] == [2, 0]
    assert found.to_json() == {"worker-1": 2}


def test_up_to_a_hundred_entries_are_written_as_earlier_versions_read_them():
    assert Attempts().bumped(SMALL, SMALL).to_json() == dict.fromkeys(SMALL, 1)


def test_a_big_group_has_one_entry_and_its_exceptions():
    everyone = ["chief-0", *BIG, "evaluator-0"]
    first = Attempts({"worker-7": 1}).bumped(["chief-0", *BIG], everyone)
    assert first.to_json() == {"others": 1, "worker-7": 2, "evaluator-0": 0}
    second = first.bumped(["chief-0", *BIG], everyone)
    assert second.to_json() == {"others": 2, "worker-7": 3, "evaluator-0": 0}
    third = second.bumped(["worker-3", "evaluator-0"], everyone)
    assert third.to_json() == {"others": 2, "worker-7": 3, "evaluator-0": 1, "worker-3": 3}
    for attempts in (first, second, third):
        assert Attempts.from_json(attempts.to_json()) == attempts


def test_every_task_is_at_the_attempt_that_was_counted_for_it():
    attempts, expected = Attempts(), dict.fromkeys(BIG, 0)
    for bumped in (BIG[:60], BIG[30:3000], BIG, BIG[3999:], BIG[:1500], BIG[1000:]):
        attempts = Attempts.from_json(attempts.bumped(bumped, BIG).to_json())
        expected |= {id_: expected[id_] + 1 for id_ in bumped}
        assert {id_: attempts.of(id_) for id_ in BIG} == expected
