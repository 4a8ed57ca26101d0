# SPDX-License-Identifier: Apache-2.0
"""The batches of one pass over the data, which are the same in every task and end at the same step.

Each task trains its rows of every batch. The first batch of a pass shows whether all tasks read the same.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from dtjob_trainer.data import marks
from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.data.stream import Portion, Stream
from dtjob_trainer.errors import DataError
from dtjob_trainer.strategies.agreement import Agreement, Error

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

MOST_AHEAD = 8
"""The most batches that are read before the tasks agree on whether all of them have them."""
BYTES_AHEAD = 2**26
"""The most memory that such batches take in a task, where they are more than one."""
PARTS = ("inputs", "targets", "sample weights")
_MEND = (
    "make the same Dataset in every task: sort the names of files, give shuffle() a seed, and use random operations in "
    "all tasks alike, not only at the chief"
)
_REFUSED = "some examples would be trained on twice and others never; "
_TOLD = "if these are not random values for the same examples, "


class Pass:
    """The batches of one pass. Collective where its length is unknown and there are several tasks: all take alike."""

    def __init__(
        self,
        source: Source,
        number: int,
        first_step: int,
        group: "Group",
        tell: Callable[[str], None] = lambda _: None,
        *,
        streams: bool = False,
        agree: bool | None = None,
    ) -> None:
        """`tell` is told where the data is not the same in all tasks, as it must be unless it has ends of its own.

        - streams: whether steps take the batches out of a `Stream`.
        - agree: whether tasks agree on where it ends. None: if its length is unknown.
        """
        self._source, self._number, self._group, self._tell = source, number, group, tell
        self._first_step, self._streams = first_step, streams
        self._agrees = group.tasks > 1 and (source.steps is None if agree is None else agree)
        self._stream: Stream | None = None
        self._batches: Iterator[Batch] = source.epoch(number, first_step)
        self._ready: deque[Batch] = deque()
        self._ahead = 1
        self._ended = False
        self._compares = group.tasks > 1 and source.compared is not None

    def take(self, most: int) -> list[Batch] | Portion:
        """The next `most` batches; fewer where it ends, none where it has ended."""
        if self._streams:
            return self._opened().portion(most) if self.more() else []
        found: list[Batch] = []
        while len(found) < most and self.more():
            found.append(self._ready.popleft())
        return found

    def more(self) -> bool:
        """Whether there is another batch; reads it where that is not known."""
        if self._streams:
            return self._opened().more
        if not self._ready and not self._ended:
            if self._agrees:
                self._agree()
            else:
                self._ready.extend(self._read(1))
                self._ended = not self._ready
            if self._compares:
                self._see(self._ready[0].marks if self._ready else ())
            self._compares = False
        return bool(self._ready)

    @property
    def over(self) -> bool:
        """Whether it is known already that there is none."""
        if self._streams:
            return self._stream is not None and not self._stream.more
        return self._ended and not self._ready

    def _opened(self) -> Stream:
        if self._stream is None:
            self._stream = Stream(self._source, self._number, self._first_step, self._see if self._compares else None)
        return self._stream

    def _read(self, most: int) -> list[Batch]:
        """The next `most` batches of this task; fewer where the data ends."""
        began = time.monotonic()
        found = list(islice(self._batches, most))
        self._source.waited += time.monotonic() - began
        return found

    def _see(self, mine: Sequence[float]) -> None:
        see_same(self._source, self._group, mine, self._tell)

    def _agree(self) -> None:
        """Read some batches and agree with all tasks on those that there are. Collective."""
        size, source = self._ahead, self._source
        mine = self._read(size)
        # per batch the tasks that have it, and their examples; at last the tasks that want no more at once
        summed = np.zeros(2 * size + 1)
        summed[: len(mine)] = 1
        summed[size : size + len(mine)] = [batch.count for batch in mine]
        summed[-1] = 2 * sum(map(source.bytes_of, mine)) > BYTES_AHEAD
        summed = self._group.sum(summed)
        enough = 1 if source.own_ends else self._group.tasks
        for step in range(size):
            having = summed[step]
            if having < enough:
                self._ended = True
                if having:
                    self._tell("the data ended at another step in some tasks; it must be the same in all of them")
                break
            batch = mine[step] if step < len(mine) else Batch(source.stand_in(self._number), 0, 0)
            self._ready.append(replace(batch, total=int(summed[size + step])) if source.own_ends else batch)
        if not summed[-1]:
            self._ahead = min(2 * size, MOST_AHEAD)


def whole_pass(
    source: Source, group: "Group", size: Callable[[], int], *, streams: bool
) -> Iterator[list[Batch] | Portion]:
    """All batches to validate on, `size` at a time. Collective if their number is unknown and there are several tasks.

    `source.epoch_ends()` was called before, as Keras does. Raises DataError where there are none.
    """
    source.epoch_begins()
    batches, empty = Pass(source, 0, 0, group, streams=streams), True
    while found := batches.take(size()):
        yield found
        empty = False
    if empty:
        raise DataError("validation_data: it has no batches; give it examples")
    source.epoch_ends()


def see_same(source: Source, group: "Group", mine: Sequence[float], tell: Callable[[str], object]) -> None:
    """Compare this task's marks of the first batch of a pass, as `Source.marks_of` returns them. Collective.

    - tell: called with a difference that may be intended.

    Raises DataError, in all tasks alike, if some examples would be trained on twice and others never.
    """
    where, told = source.argument + ": in the first batch of a pass, task {task} reads", list[str]()
    facts = Agreement(group)
    table = np.array(mine or marks.NO_BATCH).reshape(len(PARTS), -1)
    for part, (rows, *_) in zip(PARTS, table, strict=True):
        line = where + " {mine} examples and {chief} {his}; " + _MEND
        facts.add(f"{part} rows", rows, line, error=DataError, words=_rows)
    without_targets = table[1][0] < 0
    for part, (_, exact, *near) in zip(PARTS, table, strict=True):
        for name, numbers in (("exact", [exact]), ("near", near)):
            error = _error(source, part, name, without_targets, told.append)
            why = _REFUSED if error is DataError else _TOLD
            line = f"{where} other {part} than {{chief}}: {why}{_MEND}"
            facts.add(f"{part} {name}", numbers, line, near=name == "near", error=error)
    facts.exchange()
    for message in told[:1]:
        tell(message)


def _error(source: Source, part: str, name: str, without_targets: bool, tell: Callable[[str], object]) -> Error | None:
    """What to do if the marks of a part of a batch differ: "exact" are whole numbers and text, "near" are floats.

    | `source.compared` | inputs | targets and weights |
    |---|---|---|
    | "all" | refused | refused |
    | "targets": Python code may draw random inputs in each task | told | refused |
    | "labels": random operations may make inputs and mix targets | told if there are no targets | floats are told |
    """
    match source.compared:
        case "all":
            return DataError
        case "targets":
            return tell if part == "inputs" else DataError
        case _ if part == "inputs":
            return tell if without_targets else None
        case _:
            return tell if name == "near" else DataError


def _rows(number: float) -> str:
    return "no" if number < 0 else f"{number:.0f}"
