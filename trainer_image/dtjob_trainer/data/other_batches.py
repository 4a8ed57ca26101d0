# SPDX-License-Identifier: Apache-2.0
"""Where in the data a run goes on that is cut into other batches than where its checkpoint was written. Pure."""

from collections.abc import Mapping
from typing import Any

from dtjob_trainer.data.batches import Source

MEND = "; let batch_size not depend on the number of replicas, and leave it as it is while a run goes on"
"""What keeps a run from this."""


def differ(kept: Mapping[str, Any], source: Source) -> bool:
    """Whether the batches of `source` are known to be others than those of which `Epochs.kept` told."""
    sizes, lengths = (kept["batch"], source.batch), (kept["length"], source.steps)
    return any(None not in pair and pair[0] != pair[1] for pair in (sizes, lengths))


def converted(steps: int, kept: Mapping[str, Any], source: Source) -> int | None:
    """How many batches of `source` hold what so many `steps` had trained on, rounded down: no example is left out.

    None where nobody knows: the batches' sizes are unknown, or the order of examples depends on them.
    """
    was, now = kept["batch"], source.batch
    if was is None or now is None:
        return None if differ(kept, source) else steps
    if was == now:
        return steps
    return None if source.cut_by_batch or kept["cutByBatch"] else steps * was // now


def pass_began(step: int, there: int | None, source: Source) -> int:
    """The step at which a pass began of which `step` finds so many batches of `source` behind it (None: none)."""
    taken, most = there or 0, source.steps
    return step - (taken if most is None else min(taken, most))


def told(kept: Mapping[str, Any], source: Source, epoch: int, there: int | None) -> str:
    """What to say of it. `epoch` (from 0) goes on after `there` of its batches, None: begins anew."""
    was, now, what = kept["batch"], source.batch, "batch_size"
    if was is None or was == now:
        was, now, what = kept["length"], source.steps, "the number of batches"
    then = "begins anew, and what it had trained on is trained on again"
    if there is not None:
        then = "goes on where it was"
        then += ", and less than one batch is trained on twice" if what == "batch_size" else ""
    mend = MEND if what == "batch_size" else ""
    return f"{what} was {was} where the checkpoint was written, and is {now} now: epoch {epoch + 1} {then}{mend}"
