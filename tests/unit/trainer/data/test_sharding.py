# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.sharding: every example once an epoch, the same rows whoever asks and whenever."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob_trainer.data import sharding as data
from tests.unit.trainer.data.test_function import examples_of


@given(n=st.integers(1, 200), batch=st.integers(1, 64), shards=st.integers(1, 5), epoch=st.integers(0, 9))
def test_shards_of_an_epoch_hold_every_example_once(n: int, batch: int, shards: int, epoch: int) -> None:
    sizes = data.Sizes(n, batch)
    order = data.epoch_order(n, 7, epoch)
    seen: list[int] = []
    for shard in range(shards):
        batches = list(data.shard_rows(order, sizes, shard, shards, 0))
        assert len(batches) == sizes.steps
        for step, rows in enumerate(batches):
            count = sizes.of_shard(step, shard, shards)
            assert len(rows) == max(count, 1)
            seen += rows[:count].tolist()
    assert sorted(seen) == list(range(n))
    assert sum(sizes.at(step) for step in range(sizes.steps)) == n


@given(rows=st.integers(0, 300), shards=st.integers(1, 40))
def test_no_share_shrinks_when_a_batch_grows(rows: int, shards: int) -> None:
    """Else the last batch, cut in pieces as large as the shares of those before, would lose rows."""
    for shard in range(shards):
        (low, high), (begin, end) = (data.share(count, shard, shards) for count in (rows, rows + 1))
        assert 0 <= (end - begin) - (high - low) <= 1
        assert begin >= low


@given(
    n=st.integers(1, 200),
    batch=st.integers(1, 64),
    shards=st.integers(1, 5),
    first=st.integers(0, 30),
    seed=st.integers(-5, 2**70),
)
def test_a_restart_gets_the_rest_of_the_same_epoch(n: int, batch: int, shards: int, first: int, seed: int) -> None:
    sizes = data.Sizes(n, batch)
    order = data.epoch_order(n, seed, 3)
    whole = list(data.shard_rows(order, sizes, 0, shards, 0))
    rest = data.shard_rows(data.epoch_order(n, seed, 3), sizes, 0, shards, first)
    assert [rows.tolist() for rows in rest] == [rows.tolist() for rows in whole[first:]]


@given(
    n=st.integers(1, 200),
    batch=st.integers(1, 64),
    shards=st.integers(1, 5),
    first=st.integers(0, 30),
    last=st.booleans(),
)
def test_all_rows_of_a_shard_are_those_of_its_steps(n: int, batch: int, shards: int, first: int, last: bool) -> None:
    sizes, order = data.Sizes(n, batch, drop_last=not last), data.epoch_order(n, 7, 3)
    for shard in range(shards):
        steps = data.shard_rows(order, sizes, shard, shards, first)
        rows = data.all_shard_rows(order, sizes, shard, shards, first)
        assert rows.tolist() == [row for step in steps for row in step.tolist()]


@given(
    n=st.integers(0, 500),
    seed=st.integers(-5, 2**70),
    epoch=st.integers(0, 9),
    slices=st.lists(st.tuples(st.integers(0, 520), st.integers(0, 520)), max_size=8),
)
def test_an_order_that_is_sorted_in_parts_is_the_same_order(n: int, seed: int, epoch: int, slices) -> None:
    keys = np.random.Philox(key=np.array([seed % 2**64, epoch], dtype=np.uint64)).random_raw(n)
    whole = np.argsort(keys, kind="stable").tolist()
    order = data.EpochOrder(n, seed, epoch)
    assert len(order) == n
    for begin, end in [*slices, (0, n)]:
        assert order[begin:end].tolist() == whole[begin:end]
    assert data.epoch_order(n, seed, epoch).tolist() == whole


def test_only_the_first_steps_part_of_a_long_order_is_sorted_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    n, asked, sort = 2**20, [], np.argsort
    monkeypatch.setattr(np, "argsort", lambda keys, **how: asked.append(len(keys)) or sort(keys, **how))
    batches = data.shard_rows(data.EpochOrder(n, 1, 0), data.Sizes(n, 64), 0, 2, 0)
    assert len(next(batches)) == 32
    assert sum(asked) < n / 50


def test_order_depends_on_seed_and_epoch_and_never_changes() -> None:
    assert data.epoch_order(8, 1, 0).tolist() == [3, 5, 2, 7, 0, 6, 1, 4]
    orders = {tuple(data.epoch_order(50, seed, epoch)) for seed in range(4) for epoch in range(4)}
    assert len(orders) == 16


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any),
    batch=st.integers(5, 32),
    shards=st.integers(1, 5),
    first=st.integers(0, 30),
)
def test_a_restart_gets_the_rest_of_the_same_files(counts: list[int], batch: int, shards: int, first: int) -> None:
    sizes = data.Sizes(sum(counts), batch)
    order = data.epoch_order(len(counts), 0, 1)
    for shard in range(shards):
        whole, rest = (
            examples_of(data.file_pieces(order, np.asarray(counts), sizes, shard, shards, step)) for step in (0, first)
        )
        done = sum(max(sizes.of_shard(step, shard, shards), 1) for step in range(min(first, sizes.steps)))
        assert rest == whole[done:]


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 5), st.booleans(), st.data())
def test_shares_of_many_steps_are_those_of_each(n: int, batch: int, shards: int, drop: bool, drawn) -> None:
    sizes = data.Sizes(n, batch, drop)
    first, until = (drawn.draw(st.integers(0, sizes.steps)) for _ in range(2))
    shard = drawn.draw(st.integers(0, shards - 1))
    each = [sizes.of_shard(step, shard, shards) for step in range(first, until)]
    assert sizes.of_shard_in(first, until, shard, shards) == sum(each)


def test_a_pass_has_the_eras_of_its_own_steps() -> None:
    history = ((0, 3), (10, 2), (25, 4))
    assert data.eras_of_pass(history, 0) == history
    assert data.eras_of_pass(history, 8) == ((0, 3), (2, 2), (17, 4))
    assert data.eras_of_pass(history, 10) == ((0, 2), (15, 4))
    assert data.eras_of_pass(history, 30) == ((0, 4),)
    assert data.eras_of_pass((), 30) == ()


def test_arrays_must_agree() -> None:
    assert data.common_length([[1, 2], [3, 4]], "x") == 2
    with pytest.raises(data.DataError, match="x: the arrays have different lengths"):
        data.common_length([[1], [1, 2]], "x")
    with pytest.raises(data.DataError, match="empty"):
        data.common_length([[]], "x")


@given(n=st.integers(1, 90), batch=st.integers(1, 40), epoch=st.integers(0, 3))
def test_batches_in_another_order_keep_their_rows(n: int, batch: int, epoch: int) -> None:
    sizes = data.Sizes(n, batch)
    found = [rows.tolist() for rows in data.shard_rows(data.batch_order(n, batch, 7, epoch), sizes, 0, 1, 0)]
    whole = [list(range(start, min(start + batch, n))) for start in range(0, n, batch)]
    assert sorted(found) == whole
    assert len(found[-1]) == len(whole[-1])
