# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.rendezvous.tails: what other tasks printed last is kept at the chief task, and no more than fits."""

import json
from typing import Any

import pytest

from dtjob_trainer.rendezvous.tails import LONGEST, MOST_BYTES, Tails, every_seconds, tail_bytes


def sent(task: str, attempt: int, lines: str, uid: str = "uid") -> bytes:
    return json.dumps({"uid": uid, "task": task, "attempt": attempt, "lines": lines}).encode()


def test_the_last_lines_of_each_pod_replace_those_before() -> None:
    tails = Tails("uid", 1000)
    tails.take(sent("worker-1", 0, "worker-1.0 | a\n"))
    tails.take(sent("worker-0", 0, "worker-0.0 | b\n"))
    tails.take(sent("worker-1", 0, "worker-1.0 | a\nworker-1.0 | c\n"))
    tails.take(sent("worker-1", 1, "worker-1.1 | d\n"))
    assert tails.text().decode().splitlines() == [
        "worker-1.0 | a", "worker-1.0 | c", "worker-0.0 | b", "worker-1.1 | d"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"uid": "another"},
        {"task": "../worker-1"},
        {"task": 1},
        {"attempt": "0"},
        {"attempt": -1},
        {"attempt": True},
        {"lines": None},
        {"lines": "x" * (LONGEST + 1)},
    ],
)
def test_a_body_that_is_no_tail_of_this_job_is_refused(wrong: dict[str, Any]) -> None:
    tails = Tails("uid", 1000)
    body = {**json.loads(sent("worker-1", 0, "a\n")), **wrong}
    with pytest.raises(ValueError, match=r"must be|not for this job"):
        tails.take(json.dumps(body).encode())
    assert tails.text() == b""


def test_pods_that_were_replaced_make_room_first() -> None:
    tails, full = Tails("uid", 1000), MOST_BYTES // LONGEST
    tails.take(sent("worker-0", 0, "first"))
    for attempt in range(full + 3):
        tails.take(sent("worker-1", attempt, f"{attempt} ".ljust(LONGEST, "x")))
    text = tails.text().decode()
    assert len(text) <= MOST_BYTES
    assert text.startswith("first")
    assert f"{full + 2} x" in text


def test_no_more_pods_are_kept_than_two_of_each_task() -> None:
    """A stranger may name any task and attempt. Each of them would take memory, also without a line."""
    tails = Tails("uid", 3)
    tails.take(sent("worker-0", 0, "first"))
    for attempt in range(1000):
        tails.take(sent(f"worker-{attempt % 7}", attempt, "x"))
    assert len(tails.text()) == 6


@pytest.mark.parametrize("members", [2, 100, 1000, 10_000])
def test_two_pods_of_each_task_have_room_and_the_chief_has_time(members: int) -> None:
    assert 2 * members * tail_bytes(members) <= MOST_BYTES
    assert members / every_seconds(members) <= 50
    assert tail_bytes(members) <= LONGEST
