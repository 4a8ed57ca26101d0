# SPDX-License-Identifier: Apache-2.0
"""Whether all tasks read the same batches, of which each takes its rows. The first batch of each pass tells."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dtjob_trainer.data import marks
from dtjob_trainer.data.batches import Source
from dtjob_trainer.errors import DataError

if TYPE_CHECKING:  # its module imports TensorFlow, and nothing here needs that
    from dtjob_trainer.strategies.collective import Group

NEARLY = 1e-4
"""How far floats may be apart that another processor has computed."""
PARTS = ("inputs", "targets", "sample weights")
_ROWS, _EXACT, _NEAR = 0, 1, slice(2, None)
"""The columns of a part in `marks.of_rows`."""
_MEND = (
    "make the same Dataset in every task: sort the names of files, give shuffle() a seed, and use random operations in "
    "all tasks alike, not only at the chief"
)


class SameBatches:
    """Compares the tasks' batches of one source, and says what differs."""

    def __init__(self, source: Source, group: "Group", tell: Callable[[str], None]) -> None:
        """`tell` is told, once, of a difference that may be meant."""
        self._source, self._group, self._tell = source, group, tell
        self.wanted = group.tasks > 1 and source.compared is not None
        """Whether to compare."""
        self._told = False

    def see(self, mine: Sequence[float]) -> None:
        """Compare this task's marks of the first batch of a pass, as `Source.marks_of` gives them. Collective.

        Raises DataError, in all tasks alike, if some examples would be trained on twice and others never.
        """
        table = self._group.of_each(np.array(mine or marks.NO_BATCH, np.float64))
        found, refused = difference(table, self._group.members, self._source)
        if found and refused:
            self._group.leave_together()
            raise DataError(found)
        if found and not self._told:
            self._told = True
            self._tell(found)


def difference(table: npt.NDArray[np.float64], tasks: Sequence[str], source: Source) -> tuple[str, bool]:
    """What differs in the first row of `table` that is not as row 0, in words, and whether it is refused. Rows are the
    marks of `tasks`. Empty if there is no difference that counts."""
    told, parts = "", table.reshape(len(tasks), len(PARTS), -1)
    for task, mine in zip(tasks[1:], parts[1:], strict=True):
        where, alone = f"{source.argument}: in the first batch of a pass, task {task} reads", mine[1][_ROWS] < 0
        for part, here, there in zip(PARTS, mine, parts[0], strict=True):
            if here[_ROWS] != there[_ROWS]:
                return f"{where} {here[_ROWS]:.0f} examples and {tasks[0]} {there[_ROWS]:.0f}; {_MEND}", True
            others, kind = f"{where} other {part} than {tasks[0]}", _kind(part, source, here, there, alone)
            if kind == "refused":
                return f"{others}: some examples would be trained on twice and others never; {_MEND}", True
            if kind == "told" and not told:
                told = f"{others}: if these are not random values for the same examples, {_MEND}"
    return told, False


def _kind(part: str, source: Source, here: npt.NDArray[np.float64], there: npt.NDArray[np.float64], alone: bool) -> str:
    """What to do about the marks of a part of a batch in two tasks. `alone`: the batch has no targets, so that only its
    inputs can tell."""
    exact = here[_EXACT] == there[_EXACT]
    if exact and np.allclose(here[_NEAR], there[_NEAR], rtol=NEARLY, atol=0):
        return ""
    match source.compared:
        case "all":
            return "refused"
        case "targets":  # Python code may draw random inputs, each task its own
            return "told" if part == "inputs" else "refused"
        case _:  # random operations may make inputs, and mix floats of targets
            if part == "inputs":
                return "told" if alone else ""
            return "told" if exact else "refused"
