# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.function: what a data function is told delivers every example once, in its order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob_trainer.data import function as context


def examples_of(pieces) -> list[tuple[int, int]]:
    """(file, example) in the order in which they are read."""
    return [(int(file), int(first) + i) for file, first, count in pieces for i in range(int(count))]


def test_the_context_has_the_sizes_and_keeps_validation_in_order() -> None:
    told = context.DataContext(seed=0, epoch=1, shard=1, shards=2, batch_size=4, shuffle=False)
    assert told.shuffled(10).tolist() == [2, 3, 6, 7, 9]
    assert told.sizes == context.Sizes(10, 4)
    with pytest.raises(context.DataError, match="at least one"):
        told.shuffled(0)


def test_a_context_can_be_the_key_of_a_dict() -> None:
    told = context.DataContext(seed=0, epoch=1, shard=0, shards=1, batch_size=4)
    assert {told: "data"}[told] == "data"


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any),
    batch=st.integers(5, 32),
    shards=st.integers(1, 5),
    drop_last=st.booleans(),
)
def test_files_are_read_whole_and_every_example_once(
    counts: list[int], batch: int, shards: int, drop_last: bool
) -> None:
    sizes = context.Sizes(sum(counts), batch, drop_last)
    readers: dict[int, set[int]] = {file: set() for file in range(len(counts))}
    seen: list[tuple[int, int]] = []
    for shard in range(shards):
        told = context.DataContext(
            seed=3, epoch=2, shard=shard, shards=shards, batch_size=batch, shuffle=True, drop_last=drop_last
        )
        delivered = examples_of(told.files(counts))
        assert told.sizes == sizes
        shares = [sizes.of_shard(step, shard, shards) for step in range(sizes.steps)]
        assert len(delivered) == sum(max(share, 1) for share in shares)
        for file, example in delivered[: sum(shares)]:
            assert 0 <= example < counts[file]
            readers[file].add(shard)
            seen.append((file, example))
    assert len(set(seen)) == len(seen) == (sizes.steps * batch if drop_last else sizes.n)
    cut = sum(len(shards_of) - 1 for shards_of in readers.values() if shards_of)
    assert cut < shards, "between two neighbours one file is cut at most"


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any),
    batch=st.integers(5, 32),
    changes=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), min_size=1, max_size=5),
)
def test_every_example_is_read_once_though_the_number_of_shards_changes_within_the_epoch(
    counts: list[int], batch: int, changes: list[tuple[int, int]]
) -> None:
    sizes = context.Sizes(sum(counts), batch)
    starts = [min(sum(steps for steps, _ in changes[: number + 1]), sizes.steps) for number in range(len(changes))]
    eras = tuple((first, shards) for first, (_, shards) in zip([0, *starts], changes, strict=False))
    seen: list[tuple[int, int]] = []
    for number, (first, shards) in enumerate(eras):
        until = eras[number + 1][0] if number + 1 < len(eras) else sizes.steps
        for shard in range(shards):
            told = context.DataContext(seed=3, epoch=2, shard=shard, shards=shards, batch_size=batch, first_step=first)
            told.eras = eras[: number + 1]
            taken = sum(sizes.of_shard(step, shard, shards) for step in range(first, until))
            seen += examples_of(told.files(counts))[:taken]
            if first < until:  # and again after a restart of as many
                told.first_step = first + 1
                rest = taken - sizes.of_shard(first, shard, shards)
                assert examples_of(told.files(counts))[:rest] == seen[len(seen) - rest :]
    assert len(set(seen)) == len(seen) == sizes.n


def test_files_come_in_a_new_order_in_each_epoch_and_validation_in_its_own() -> None:
    def order(epoch: int, shuffle: bool) -> list[int]:
        told = context.DataContext(seed=0, epoch=epoch, shard=0, shards=1, batch_size=4, shuffle=shuffle)
        return [file for file, _, _ in told.files([3, 0, 5, 2, 4])]

    assert order(0, False) == order(1, False) == [0, 2, 3, 4]
    assert sorted(order(0, True)) == sorted(order(1, True)) == [0, 2, 3, 4]
    assert order(0, True) != order(1, True)
    for counts in ([], [0, 0], [3, -1]):
        with pytest.raises(context.DataError, match="number of examples in each file"):
            context.DataContext(seed=0, epoch=0, shard=0, shards=1, batch_size=4).files(counts)
