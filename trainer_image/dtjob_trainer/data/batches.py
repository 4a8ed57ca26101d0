"""What one task trains on: batches, its place in the data, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from dtjob_trainer.data.sharding import Sizes


@dataclass(frozen=True)
class Batch:
    """One step's data for one task."""

    inputs: tuple[Any, ...]
    """What `decode` turns into (x, y, sample weights); at least one row, even where `count` is 0."""
    count: int
    """Examples of this task's share."""
    total: int
    """Examples of the global batch."""


@dataclass(frozen=True)
class Place:
    """A task's place in the data: `shard` of `shards`, and the replicas of all tasks together."""

    shard: int
    shards: int
    replicas: int
    remote: bool = False
    """Whether steps run on other machines, so that inputs must be the examples themselves."""


@dataclass(frozen=True)
class Wanted:
    """How data is to be taken, all tasks together, and what messages call it."""

    argument: str = "x"
    """The argument that it was given as."""
    steps_argument: str = "steps_per_epoch"
    """The argument that says how many of its batches to take."""
    batch_size: int | None = None
    """Examples of a batch; None where nobody asked for a size."""
    any_batch_size: bool = False
    """Whether results do not depend on the size of batches, so that it may be raised to one example a replica."""
    steps: int | None = None
    """Steps that make an epoch, after which the next one goes on in the data; None: a pass over the data does."""
    at_most: int | None = None
    """Instead of `steps`: take only so many of the first batches, in every epoch the same."""
    seed: int = 0
    """Seed of the order."""
    shuffle: bool = False
    """Whether to give the examples a new order in each epoch, where they have none of their own."""
    drop_last: bool = False
    """Whether to leave out a last batch that is not full."""


class Source(Protocol):
    """Where batches come from."""

    steps: int
    """Steps of one epoch."""
    may_be_empty: bool
    """Whether some replica may get a share of no examples at some step."""
    sizes: Sizes | None
    """The examples of each step, where it is known how many there are in all."""
    exact: bool
    """Whether a restarted run sees the same data in the same order."""

    def epoch(self, epoch: int, first_step: int) -> Iterator[Batch]:
        """The batches of `epoch` from `first_step` on."""

    def decode(self, *inputs: Any) -> tuple[Any, Any, Any]:
        """In the graph: a batch's inputs → (x, y, sample weights), with None for what there is not."""

    def input_spec(self) -> tuple[Any, ...]:
        """A batch's inputs as `tf.TensorSpec`s with a batch dimension of None."""

    def spec(self) -> tuple[Any, Any, Any]:
        """(x, y, sample weights) as `tf.TensorSpec`s with a batch dimension of None."""


def groups(batches: Iterator[Batch], size: int) -> Iterator[list[Batch]]:
    """`batches`, `size` at a time; fewer at the end."""
    while group := list(islice(batches, size)):
        yield group


def triple(parts: Any) -> tuple[Any, Any, Any]:
    """(x,), (x, y) or (x, y, sample weights) → all three."""
    return (parts[0], parts[1] if len(parts) > 1 else None, parts[2] if len(parts) > 2 else None)
