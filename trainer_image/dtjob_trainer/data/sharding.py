# SPDX-License-Identifier: Apache-2.0
"""Which examples a shard trains on at which step: pure functions of (seed, epoch, step). No TensorFlow here.

A global batch of `b` rows is cut into consecutive shares, one for each shard (a task); a task cuts its share again for
its replicas. The order of an epoch depends on (seed, epoch) alone, so that a restarted run goes on with the very rows
that the undisturbed one would have taken.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dtjob_trainer.errors import DataError

Rows = npt.NDArray[np.int64]
Eras = tuple[tuple[int, int], ...]
"""From which step on how many shards have shared each batch, in order."""
TO_PART = 2
"""By how many bits the first byte of a key is longer than the number of its part: there are 64 parts."""


def share(count: int, shard: int, shards: int) -> tuple[int, int]:
    """The half-open range of `count` consecutive rows that belongs to `shard`; shares differ by one row at most.

    One row more makes one shard's share larger and none smaller, so that nobody's share of a last batch is larger than
    of the full ones before: a data function's examples come in batches of that size.
    """
    size, more = divmod(count, shards)
    low = shard * size + min(shard, more)
    return low, low + size + (shard < more)


class EpochOrder:
    """A permutation of range(n), the same on every machine and NumPy version; slices of it are sorted as they come.

    Sorts by Philox's raw stream: NumPy keeps that stream stable, but not what Generator.permutation makes of it. Only
    the part of an order is sorted that was asked for last, so that a pass over a long one begins at once.
    """

    def __init__(self, n: int, seed: int, epoch: int) -> None:
        self._keys = np.random.Philox(key=np.array([seed % 2**64, epoch], dtype=np.uint64)).random_raw(n)
        self._parts = self._keys.astype("<u8", copy=False).view(np.uint8)[7::8] >> np.uint8(TO_PART)
        """The number of each row's part."""
        self._ends = np.cumsum(np.bincount(self._parts, minlength=2**8 >> TO_PART))
        self._sorted: tuple[int, Rows] | None = None

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._keys)

    def __getitem__(self, wanted: slice) -> Rows:
        """The rows of a slice without a step."""
        begin, end, _ = wanted.indices(len(self))
        first, last = np.searchsorted(self._ends, [begin, max(end - 1, begin)], side="right").tolist()
        found = []
        for number in range(first, min(last + 1, len(self._ends))):
            offset = int(self._ends[number - 1]) if number else 0
            found.append(self._part(number)[max(begin - offset, 0) : max(end - offset, 0)])
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0, np.int64), *found])

    def _part(self, number: int) -> Rows:
        if self._sorted is None or self._sorted[0] != number:
            rows = np.flatnonzero(self._parts == number)
            rows = rows[np.argsort(self._keys[rows], kind="stable")]
            self._sorted = number, rows.astype(np.int64, copy=False)
        return self._sorted[1]


def epoch_order(n: int, seed: int, epoch: int) -> Rows:
    """All rows of the `EpochOrder` of an epoch."""
    return EpochOrder(n, seed, epoch)[:]


def batch_order(n: int, batch: int, seed: int, epoch: int) -> Rows:
    """range(n) with its full batches in another order; the last one, where it is not full, stays the last."""
    full = n // batch
    blocks = epoch_order(full, seed, epoch)[:, None] * batch + np.arange(batch)
    return np.concatenate([blocks.ravel(), np.arange(full * batch, n)])


@dataclass(frozen=True)
class Sizes:
    """The examples of each step of an epoch: `n` in all, `batch` a step, the last step smaller where it must be."""

    n: int
    batch: int
    drop_last: bool = False

    @property
    def steps(self) -> int:
        """Steps of one epoch."""
        return self.n // self.batch if self.drop_last else -(-self.n // self.batch)

    def check(self, argument: str) -> None:
        """Raise DataError for data given as `argument` that makes no step, as only full batches are taken."""
        if self.steps == 0:
            raise DataError(
                f"{argument}: {self.n} examples are less than one batch of {self.batch}; give a smaller batch_size"
            )

    @property
    def left_out(self) -> int:
        """Examples of an epoch that no step takes."""
        return max(self.n - self.steps * self.batch, 0)

    def at(self, step: int) -> int:
        """Examples of all shards together at `step` of an epoch (0-based)."""
        return min(self.batch, self.n - step * self.batch)

    def of_shard(self, step: int, shard: int, shards: int) -> int:
        """Examples of `shard` at `step`; may be 0 in the last step."""
        low, high = share(self.at(step), shard, shards)
        return high - low

    def of_shard_in(self, first: int, until: int, shard: int, shards: int) -> int:
        """Examples of `shard` at the steps from `first` to before `until`, all of which but the last are full."""
        if until <= first:
            return 0
        return (until - first - 1) * self.of_shard(first, shard, shards) + self.of_shard(until - 1, shard, shards)

    def smallest_share(self, shards: int) -> int:
        """The fewest examples that any shard gets at any step."""
        return min(self.at(0), self.at(self.steps - 1)) // shards


def shard_rows(order: Rows | EpochOrder, sizes: Sizes, shard: int, shards: int, first_step: int) -> Iterator[Rows]:
    """The rows of `order` that `shard` takes, one array for each step from `first_step` on.

    Where a shard's share of the last batch is empty it gets one row all the same, to be weighted with zero: a step on
    no rows at all would make batch normalisation and mean losses divide by zero.
    """
    for step in range(first_step, sizes.steps):
        batch = order[step * sizes.batch : step * sizes.batch + sizes.at(step)]
        low, high = share(len(batch), shard, shards)
        yield batch[low:high] if high > low else batch[:1]


def all_shard_rows(order: Rows, sizes: Sizes, shard: int, shards: int, first_step: int) -> Rows:
    """The arrays of `shard_rows`, end to end. All full batches are cut at once: an epoch may have millions of steps."""
    full = max(sizes.n // sizes.batch, first_step)
    low, high = share(sizes.batch, shard, shards)
    batches = order[first_step * sizes.batch : full * sizes.batch].reshape(-1, sizes.batch)
    cut = batches[:, low:high] if high > low else batches[:, :1]
    rest = [*shard_rows(order, sizes, shard, shards, full)]
    rows = np.empty(cut.size + sum(map(len, rest)), order.dtype)
    rows[: cut.size].reshape(cut.shape)[:] = cut
    rows[cut.size :] = np.concatenate([rows[:0], *rest])
    return rows


def eras_of_pass(history: Eras, began: int) -> Eras:
    """The eras of a pass that began at step `began` of a run, by steps of the pass, from those of the whole run."""
    begin = max(began, 0)  # below 0 where the pass began in larger batches
    shared = [shards for first, shards in history if first <= begin][-1:]
    return (
        *((0, shards) for shards in shared),
        *((first - began, shards) for first, shards in history if first > begin),
    )


def file_pieces(
    order: Rows, counts: Rows, sizes: Sizes, shard: int, shards: int, first_step: int, eras: Eras = ()
) -> Rows:
    """What `shard` reads of files with `counts` examples each, taken in `order`, from `first_step` of the epoch on.

    Rows of (file, first example, examples). The files end to end are cut into one stretch for each shard, as long as
    its shares of all steps together, so that a shard reads whole files but for the first and the last. Where the number
    of shards has changed within the epoch (`eras`), what the earlier ones have left is cut so. An empty share of the
    last batch gets one example all the same, as in `shard_rows`; full batches have some for every shard.
    """
    left = np.stack([order, np.zeros_like(order), counts[order]], axis=1)
    first_step = min(first_step, sizes.steps)
    began = 0
    for (first, others), (until, _) in pairwise([*eras, (first_step, shards)]):
        if others != shards or until < first_step:
            stretches = [_stretch(sizes, other, others, first, until) for other in range(others)]
            left, began = np.concatenate([_cut(left, *one) for one in stretches]), until
    begin, end = _stretch(sizes, shard, shards, began, first_step)
    pieces = _cut(left, begin, end)
    if first_step < sizes.steps and sizes.of_shard(sizes.steps - 1, shard, shards) == 0:
        filled = order[counts[order] > 0][0]
        pieces = np.concatenate([pieces, [[filled, 0, 1]]])
    return pieces.astype(np.int64)


def _stretch(sizes: Sizes, shard: int, shards: int, first: int, taken: int) -> tuple[int, int]:
    """The half-open range, in what is left at step `first`, that `shard` has yet to read at step `taken`."""
    totals = [sizes.of_shard_in(first, sizes.steps, other, shards) for other in range(shard + 1)]
    begin = sum(totals[:shard])
    return begin + sizes.of_shard_in(first, taken, shard, shards), begin + totals[shard]


def _cut(pieces: Rows, begin: int, end: int) -> Rows:
    """The examples `begin` to `end` of these pieces of files, laid end to end."""
    ends = np.cumsum(pieces[:, 2])
    starts = ends - pieces[:, 2]
    low, high = np.maximum(starts, begin), np.minimum(ends, end)
    found = high > low
    return np.stack([pieces[found, 0], (pieces[:, 1] + low - starts)[found], (high - low)[found]], axis=1)


def common_length(arrays: Iterable[Any], argument: str) -> int:
    """The number of examples, which all `arrays` that are not None must have. Raises DataError where they differ."""
    lengths = {len(array) for array in arrays if array is not None}
    if len(lengths) != 1:
        raise DataError(f"{argument}: the arrays have different lengths ({', '.join(map(str, sorted(lengths)))})")
    (length,) = lengths
    if length < 1:
        raise DataError(f"{argument}: the arrays are empty; give at least one example")
    return int(length)
