# SPDX-License-Identifier: Apache-2.0
"""The attempt of every task, and the tasks that have finished, as `status.internal` keeps them.

Thousands of tasks may be restarted or finish at once, so both are written in short.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints

from dtjob.api.spec.replica_specs import MAX_REPLICAS
from dtjob.api.status.block import Int32, StatusBlock

PLAIN_UP_TO = 100
"""Up to so many restarted tasks each has an entry of its own, which is easy to read."""
MOST_TASKS = 4 * MAX_REPLICAS
"""No job has more tasks. A status that somebody forged may name more than can be counted."""
_TASK = re.compile(r"[a-z]{1,16}-\d{1,9}", re.ASCII)
_TaskId = Annotated[str, StringConstraints(pattern=_TASK)]


class Attempts(StatusBlock):
    """The attempt of each task by its id. A task that is not in `exceptions` is at `others`."""

    exceptions: Annotated[dict[_TaskId, Int32], Field(max_length=MOST_TASKS)] = {}
    """The attempt of single tasks."""
    others: Int32 = 0
    """The attempt of all other tasks."""

    def of(self, task_id: str) -> int:
        """The attempt of one task."""
        return self.exceptions.get(task_id, self.others)

    def bumped(self, bumped: Iterable[str], everyone: Iterable[str], by: int = 1) -> "Attempts":
        """With the next attempt for the tasks `bumped`, or the one before if `by` is -1. `everyone` are the ids of all
        tasks, those among them."""
        exceptions = dict(self.exceptions)
        for id_ in bumped:
            exceptions[id_] = self.of(id_) + by
        if len(exceptions) <= PLAIN_UP_TO:
            return self.but(exceptions=exceptions)
        whole = {id_: exceptions.get(id_, self.others) for id_ in everyone}
        most = Counter(whole.values()).most_common(1)[0][0]
        return self.but(exceptions={id_: at for id_, at in whole.items() if at != most}, others=most)


class FinishedTasks(StatusBlock):
    """Tasks of one role that finished at one attempt."""

    role: str
    """The role."""
    attempt: Int32
    """The attempt."""
    indexes: str
    """The indexes of the tasks, as a Job's completedIndexes: 0-3,7."""


def finished_from_json(entries: Any) -> Any:
    """Task ids to attempts, out of the form of `status.internal.finished`. Raises ValueError for any other form."""
    if isinstance(entries, Mapping):  # as they are in Python
        if not all(isinstance(id_, str) and _TASK.fullmatch(id_) for id_ in entries):
            raise ValueError("the ids must be such as worker-0")
        return entries
    if not isinstance(entries, list | tuple):
        return entries
    read = (FinishedTasks.model_validate(entry) for entry in entries)
    tasks = ((f"{one.role}-{index}", one.attempt) for one in read for index in _indexes(one.indexes))
    found = dict(itertools.islice(tasks, MOST_TASKS))
    if next(tasks, None) is not None:
        raise ValueError(f"there are more than {MOST_TASKS} tasks")
    return finished_from_json(found)


def finished_to_json(finished: Mapping[str, int]) -> list[dict[str, Any]]:
    """The tasks in the form of the status, sorted; empty for none."""
    groups: dict[tuple[str, int], list[int]] = {}
    for id_, attempt in finished.items():
        role, _, index = id_.rpartition("-")
        groups.setdefault((role, attempt), []).append(int(index))
    return [
        {"role": role, "attempt": attempt, "indexes": _ranges(indexes)}
        for (role, attempt), indexes in sorted(groups.items())
    ]


Finished = Annotated[dict[str, int], BeforeValidator(finished_from_json), PlainSerializer(finished_to_json)]
"""Task id to the attempt that ended well."""


def _indexes(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _ranges(indexes: Iterable[int]) -> str:
    """Sorted, with neighbours as one range."""
    parts = []
    # Of neighbours, the difference between the index and its place in the list is the same.
    for _, run in itertools.groupby(enumerate(sorted(indexes)), lambda numbered: numbered[1] - numbered[0]):
        neighbours = [index for _, index in run]
        parts.append(f"{neighbours[0]}-{neighbours[-1]}" if len(neighbours) > 1 else f"{neighbours[0]}")
    return ",".join(parts)
