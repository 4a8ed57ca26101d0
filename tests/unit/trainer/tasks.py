# SPDX-License-Identifier: Apache-2.0
"""Several tasks as threads of this process, which exchange numbers as the tasks of a job do."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class Tasks:
    """Tasks of these ids. Each gets a group with the methods of `dtjob_trainer.strategies.collective.Group`."""

    def __init__(self, members: Sequence[str]) -> None:
        self.members = tuple(members)
        self.groups: list[Any] = [_Group(self, index) for index in range(len(members))]
        self._changed = threading.Condition()
        self._rows: dict[Any, dict[int, Any]] = {}

    @property
    def exchanges(self) -> int:
        """How often they have exchanged numbers."""
        return len(self._rows)

    def run(self, task: Callable[[Any], Any]) -> list[Any]:
        """What `task` returns for the group of each task. Raises the first error."""
        found = self.found(task)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return found

    def errors(self, task: Callable[[Any], Any]) -> list[BaseException | None]:
        """What `task` raises for the group of each task."""
        return [each if isinstance(each, BaseException) else None for each in self.found(task)]

    def found(self, task: Callable[[Any], Any]) -> list[Any]:
        """What `task` returns or raises for the group of each task."""
        found: list[Any] = [TimeoutError("a task waits for others")] * len(self.members)

        def one(group: Any) -> None:
            try:
                found[group.index] = task(group)
            except BaseException as error:
                found[group.index] = error

        threads = [threading.Thread(target=one, args=(group,), daemon=True) for group in self.groups]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        return found

    def table(self, index: int, key: Any, mine: Any) -> Any:
        """The rows of all tasks for this exchange, once all have given theirs."""
        with self._changed:
            rows = self._rows.setdefault(key, {})
            assert index not in rows, f"task {index} gives twice what all exchange as {key}"
            rows[index] = mine
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: len(rows) == len(self.members), 10):
                raise TimeoutError(f"other tasks have not come to exchange {key}")
            return np.stack([rows[each] for each in range(len(self.members))])


class _Group:
    def __init__(self, tasks: Tasks, index: int) -> None:
        self._all, self.index, self._number = tasks, index, 0
        self.members, self.tasks = tasks.members, len(tasks.members)

    def of_each(self, mine: Any, key: int | None = None) -> Any:
        """As that of `Group`."""
        if key is not None:
            return self._all.table(self.index, ("key", key), mine)
        self._number += 1
        return self._all.table(self.index, self._number, mine)

    def sum(self, mine: Any) -> Any:
        """As that of `Group`."""
        return self.of_each(mine).sum(axis=0)

    def leave_together(self) -> None:
        """As that of `Group`."""
        self.sum(np.zeros(1))
