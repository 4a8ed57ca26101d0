# SPDX-License-Identifier: Apache-2.0
"""What a data function is told: its shard of an epoch. Pure; no TensorFlow here."""

from collections.abc import Sequence

import numpy as np

from dtjob_trainer.data.sharding import Eras, Rows, Sizes, all_shard_rows, epoch_order, file_pieces
from dtjob_trainer.errors import DataError


class DataContext:
    """What a data function is told: which shard of which epoch to deliver, and from where on.

    A function given to `fit` as `x` is called once for each epoch and returns an unbatched `tf.data.Dataset` of this
    shard's examples in this epoch. `shuffled(n)` gives it the indices to deliver, in order, and `files(counts)` the
    parts of files; data is then sharded before it is decoded, and a restart goes on where it stopped.
    """

    def __init__(
        self,
        *,
        seed: int,
        epoch: int,
        shard: int,
        shards: int,
        batch_size: int,
        first_step: int = 0,
        shuffle: bool = True,
        drop_last: bool = False,
    ) -> None:
        self.seed = seed
        """Seed of the data order."""
        self.epoch = epoch
        """Number of the epoch, from 0."""
        self.shard = shard
        """Which shard this task delivers, from 0."""
        self.shards = shards
        """How many tasks share each batch."""
        self.first_step = first_step
        """The step of the epoch from which on to deliver; above 0 only after a restart."""
        self.batch_size = batch_size
        """Size of the global batch, of which this shard delivers its share."""
        self.sizes: Sizes | None = None
        """Sizes of the steps, once `shuffled` or `files` has told how many examples there are."""
        self.by_file = False
        """Whether it was `files` that told."""
        self.eras: Eras = ()
        """How many tasks have shared the batches of this epoch so far, where that has changed."""
        self._shuffle, self._drop_last = shuffle, drop_last

    def shuffled(self, n: int) -> Rows:
        """Indices (int64) into a data set of `n` examples: this shard's, this epoch's, from `first_step` on.

        Validation data comes in order. Raises DataError where `n` is below 1.
        """
        if n < 1:
            raise DataError(f"DataContext.shuffled({n}): the data set must have at least one example")
        self.sizes = Sizes(n, self.batch_size, self._drop_last)
        order = epoch_order(n, self.seed, self.epoch) if self._shuffle else np.arange(n, dtype=np.int64)
        return all_shard_rows(order, self.sizes, self.shard, self.shards, self.first_step)

    def files(self, counts: Sequence[int]) -> Rows:
        """What this shard reads of files that hold `counts` examples: rows (int64) of (file, first example, examples).

        File is an index into `counts`. Read in the order of the rows, they are this shard's examples of this epoch from
        `first_step` on; all shards together read every example once, and few files are read by more than one. Files
        come in a new order in each epoch (validation's as they are), the examples of one file in theirs. Raises
        DataError where there are no examples, or fewer than none.
        """
        found = np.asarray(counts, np.int64)
        if found.ndim != 1 or found.sum() < 1 or found.min() < 0:
            raise DataError(
                f"DataContext.files({counts!r}): give the number of examples in each file, one or more in all"
            )
        self.sizes, self.by_file = Sizes(int(found.sum()), self.batch_size, self._drop_last), True
        files = epoch_order(len(found), self.seed, self.epoch) if self._shuffle else np.arange(len(found))
        return file_pieces(files, found, self.sizes, self.shard, self.shards, self.first_step, self.eras)
