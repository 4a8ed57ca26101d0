# SPDX-License-Identifier: Apache-2.0
"""Where in the data a run goes on that is cut into other batches than where its checkpoint was written. Pure."""

from dataclasses import dataclass

from dtjob_trainer.data.batches import Source

MEND = "; let batch_size not depend on the number of replicas, and leave it as it is while a run goes on"
"""What keeps a run from this."""


@dataclass
class Position:
    """Where in the data a run is, as a checkpoint keeps it. All numbers are of steps unless they say otherwise."""

    began: int = 0
    """The step at which the present epoch began."""
    passes: int = 0
    """Passes over the data that have ended."""
    pass_began: int = 0
    """The step at which the present pass began; below 0 where the pass began in larger batches."""
    length: int | None = None
    """Steps of a pass, where known."""
    steps: int | None = None
    """Steps of an epoch, as the program asks for them. None: a pass makes one."""
    batch: int | None = None
    """Examples of a batch, where known."""
    cut_by_batch: bool = False
    """Whether the order of examples depends on the size of batches."""
    first: int = 0
    """The number of the run's first epoch, from 0."""
    ended: int = 0
    """Epochs that have ended, those before the first included."""
    out: bool = False
    """Whether there is no data for another epoch."""


def differ(kept: Position, source: Source) -> bool:
    """Whether the batches of `source` are known to be others than those where the checkpoint was written."""
    sizes, lengths = (kept.batch, source.batch), (kept.length, source.steps)
    return any(None not in pair and pair[0] != pair[1] for pair in (sizes, lengths))


def converted(steps: int, kept: Position, source: Source) -> int | None:
    """How many batches of `source` hold what so many `steps` had trained on, rounded down: no example is left out.

    None where nobody knows: the batches' sizes are unknown, or the order of examples depends on them.
    """
    was, now = kept.batch, source.batch
    if was is None or now is None:
        return None if differ(kept, source) else steps
    if was == now:
        return steps
    return None if source.cut_by_batch or kept.cut_by_batch else steps * was // now


def pass_began(step: int, there: int | None, source: Source) -> int:
    """The step at which a pass began of which `step` finds so many batches of `source` behind it (None: none)."""
    taken, most = there or 0, source.steps
    return step - (taken if most is None else min(taken, most))


def told(kept: Position, source: Source, epoch: int, there: int | None) -> str:
    """What to say of it. `epoch` (from 0) goes on after `there` of its batches, None: begins anew."""
    was, now, what = kept.batch, source.batch, "batch_size"
    if was is None or was == now:
        was, now, what = kept.length, source.steps, "the number of batches"
    then = "begins anew, and what it had trained on is trained on again"
    if there is not None:
        then = "goes on where it was"
        then += ", and less than one batch is trained on twice" if what == "batch_size" else ""
    mend = MEND if what == "batch_size" else ""
    return f"{what} was {was} where the checkpoint was written, and is {now} now: epoch {epoch + 1} {then}{mend}"
