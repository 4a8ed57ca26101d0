"""dtjob_trainer.data.batches: batches in groups, and the parts of an example."""

import pytest

pytest.importorskip("numpy")
batches = pytest.importorskip("dtjob_trainer.data.batches")


@pytest.mark.parametrize(("size", "expected"), [(1, [[0], [1], [2]]), (2, [[0, 1], [2]]), (3, [[0, 1, 2]])])
def test_groups_hold_all_batches_in_order_and_fewer_at_the_end(size: int, expected: list[list[int]]) -> None:
    assert list(batches.groups(iter(range(3)), size)) == expected
    assert list(batches.groups(iter(()), size)) == []


def test_groups_take_no_batch_before_it_is_asked_for() -> None:
    """Else a step would wait for data that belongs to the next one."""
    taken: list[int] = []
    groups = batches.groups((taken.append(number) or number for number in range(4)), 2)
    assert next(groups) == [0, 1]
    assert taken == [0, 1]


def test_what_there_is_not_of_an_example_is_none() -> None:
    assert batches.triple(("x",)) == ("x", None, None)
    assert batches.triple(("x", "y")) == ("x", "y", None)
    assert batches.triple(("x", "y", "w")) == ("x", "y", "w")
