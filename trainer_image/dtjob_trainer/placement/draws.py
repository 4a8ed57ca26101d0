# SPDX-License-Identifier: Apache-2.0
"""Operations that draw random numbers: for rows, others on each replica; for what belongs to no rows, the same."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from dtjob_trainer.placement import joined, kinds, rules
from dtjob_trainer.placement.kinds import Kind, Make, Mode, Placement

if TYPE_CHECKING:
    from dtjob_trainer.placement.tracker import Tracker

_APART = 1_000_003
"""Between the seeds of two replicas."""


def alike(tracker: "Tracker", attrs: Any) -> Any:
    """The attributes of an operation that all replicas compute alike, so that random numbers that belong to no rows are
    the same. TensorFlow makes seeds of the number of operations, which differs between replicas: each seed is replaced
    by its number among those of the step."""
    if tracker.mode is Mode.OFF or not attrs or "seed2" not in attrs or not (attrs["seed"].i or attrs["seed2"].i):
        return attrs
    seeds = attrs["seed"].i, attrs["seed2"].i
    return {**attrs, "seed2": type(attrs["seed2"])(i=tracker.seeds.setdefault(seeds, len(tracker.seeds) + 1))}


def of_first_replica(tracker: "Tracker", operation: Any) -> Any:
    """An operation that draws numbers which belong to no rows. If the seed is that of a generator, of which each
    replica has its own, the numbers of the first replica count."""
    source, output = operation, operation.outputs[0]
    while source.type != "RngReadAndSkip" and len(source.inputs):
        source = source.inputs[source.type in rules.DRAWN_BY_SEED].op
    if tracker.mode is Mode.STEP and source.type == "RngReadAndSkip" and output.dtype is not tf.uint64:  # no key
        kinds.put(output, Placement(Kind.LATER, make=lambda: joined.sums([joined.first_only(output)])[0]))
    return operation


def apart(tracker: "Tracker", make: Make, op_type: str, inputs: Sequence[Any], attrs: Any) -> Any:
    """Make an operation that draws random numbers for rows. All replicas have the same seeds, so that each of them adds
    its number."""
    number = tf.distribute.get_replica_context().replica_id_in_sync_group
    if op_type in rules.DRAWN_BY_SEED:
        with tracker.within(Mode.OFF):
            shape, seed, *others = inputs
            inputs = [shape, seed + _APART * tf.cast(number, seed.dtype), *others]
        return make(inputs)
    known = tf.get_static_value(number)
    if known is None or not (attrs["seed"].i or attrs["seed2"].i):
        return make(inputs)
    seed = attrs["seed2"]
    return make(inputs, attrs={**attrs, "seed2": type(seed)(i=seed.i + _APART * int(known))})
