# SPDX-License-Identifier: Apache-2.0
"""The batches of a pass as steps take them out of the data by themselves, several in one call from Python."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:  # which uses `free`
    from dtjob_trainer.data.batches import Source


class Stream:
    """One pass over a source whose batches are `elements` of a Dataset, and where in it the steps are.

    One element is read ahead, so that it is known whether there is another batch, and no step begins without one.
    """

    def __init__(
        self, source: "Source", number: int, first_step: int, see: Callable[[Sequence[float]], None] | None = None
    ) -> None:
        """Pass `number`, from `first_step` of it on. Reads the first element, and lets `see` have its marks."""
        self._source, self._number, self._began = source, number, first_step
        self.step = first_step
        """Steps of the pass that are done."""
        began = time.monotonic()
        self._iterator: Any = iter(source.elements(number, first_step))
        self.iterator: Any = flat(self._iterator)
        """The iterator, as one tensor; None where it is at its end."""
        source.waited += time.monotonic() - began
        ahead, self._there = self.read()
        self.ahead = flat(ahead)
        """The element of the next step as a `tf.experimental.Optional`, as one tensor; empty where there is none."""
        if see is not None:
            see(source.marks_of(ahead.get_value()) if self._there else ())
        self._check()

    @property
    def more(self) -> bool:
        """Whether there is another batch."""
        return self._there and self._left != 0

    def portion(self, most: int) -> "Portion":
        """The next `most` batches, or as many as there are."""
        left = self._left
        return Portion(self, most if left is None else min(most, left))

    def read(self) -> tuple[Any, bool]:
        """The next element as a `tf.experimental.Optional`, and whether there is one."""
        began = time.monotonic()
        ahead = self._iterator.get_next_as_optional()
        there = bool(ahead.has_value())
        self._source.waited += time.monotonic() - began
        return ahead, there

    def advance(self, ahead: Any, steps: int, *, there: bool, waited: float) -> None:
        """So many `steps` are done, and `ahead` is the next element.

        - there: whether there is one.
        - waited: for how many seconds the steps have waited for elements. Below 0 if the last step's batch was not
          what the source must give: then this raises DataError.
        """
        if waited < 0:
            last = self.step + steps - 1
            again = iter(self._source.elements(self._number, self._began))
            self._source.complain(next(islice(again, last - self._began, None)), last)
        self.step += steps
        self._source.waited += waited
        self.ahead, self._there = ahead, there
        self._check()

    @property
    def _left(self) -> int | None:
        most = self._source.most
        return None if most is None else max(most - self.step, 0)

    def _check(self) -> None:
        if self._there:
            return
        held = [self._iterator, self.iterator]
        self._iterator = self.iterator = None
        free(held)
        if self._left:
            self._source.ended(self._number, self.step)


def flat(value: Any) -> Any:
    """The one tensor that an iterator or an optional is."""
    [tensor] = tf.nest.flatten(value, expand_composites=True)
    return tensor


def at_end() -> Any:
    """An iterator at its end, in place of that of any data: a step that is given it reads no element."""
    options = tf.data.Options()
    options.autotune.enabled = False  # so that whoever frees it waits for no thread (`free`)
    iterator = iter(tf.data.Dataset.range(0).with_options(options))
    assert not iterator.get_next_as_optional().has_value()  # waits until it is there
    return iterator


@dataclass(frozen=True)
class Portion:
    """Batches to run in one call."""

    stream: Stream
    most: int
    """How many; fewer where the data ends before."""


def free(held: list[Any]) -> None:
    """Have `held`, the only references to an iterator that is at its end, cleared by a thread that may wait.

    Not for an iterator that could give more: what it reads might meet the next one's, as in a cache in a file.

    tf.data tunes each iterator in a thread of its own, which sleeps for 10 ms, 20 ms, 40 ms and so on up to a minute.
    Whoever frees the iterator wakes and joins that thread. But TensorFlow (seen in 2.21) notifies the thread a moment
    before it counts as cancelled. About every other time the thread looks too early and sleeps on: an epoch of 3 s ends
    at 5.1 s.
    """
    threading.Thread(target=held.clear, name="read-out", daemon=True).start()
