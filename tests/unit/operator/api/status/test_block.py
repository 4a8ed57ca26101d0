# SPDX-License-Identifier: Apache-2.0
"""What every block of the status does."""

import pytest

from dtjob.api.status.activity import Activity
from dtjob.api.status.block import cut, whole
from dtjob.api.status.goodput import GoodputSeconds
from dtjob.api.status.restarts import LastFailure, Restarts
from tests.unit.operator.builders import NOW, at


def test_a_changed_copy_leaves_the_block_alone():
    before = Restarts.model_validate({"total": 1, "evaluator": 1})
    after = before.but(total=2)
    assert (before.to_json(), after.to_json()) == ({"total": 1, "evaluator": 1}, {"total": 2, "evaluator": 1})
    assert before != after
    assert after.but(total=1) == before


def test_a_change_of_an_unknown_field_raises_a_type_error():
    with pytest.raises(TypeError, match="Restarts has no field totl"):
        Restarts().but(totl=3)


def test_a_block_is_not_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        Restarts().total = 3


def test_texts_of_the_status_are_cut_to_their_limit():
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")
    long = LastFailure(task="t" * 300, log_tail="m" * 5000, message="short")
    assert (len(long.task), len(long.log_tail), long.message) == (256, 4096, "short")


def test_times_are_whole_seconds():
    assert whole(at(0.7)) == NOW
    assert Activity(since=at(0.7)).to_json() == {"since": "2026-11-21T10:00:00Z"}


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1"), (1.5, "1.5"), (0.25, "0.25"), (100.0, "100"), (3.14159, "3.14")]
)
def test_seconds_are_text_with_two_decimals_at_most(value: float, text: str):
    assert GoodputSeconds(kept=value).to_json() == {"kept": text}
    assert GoodputSeconds.model_validate({"kept": text}).kept == round(value, 2)
