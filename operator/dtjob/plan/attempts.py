"""The attempt of every task, as `status.attempts` keeps it: one number for most of a big job, and the exceptions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

OTHERS = "others"
"""The entry for all tasks that have none of their own. No task id is like it: those have a number."""

PLAIN_UP_TO = 100
"""Up to so many entries every task that was ever restarted has its own, as earlier versions of the operator read it."""


@dataclass(frozen=True)
class Attempts:
    """The attempt of each task by its id. A task that is not in `exceptions` is at `others`."""

    exceptions: Mapping[str, int] = field(default_factory=dict)
    others: int = 0

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Attempts:
        """The attempts that a status holds."""
        if OTHERS not in fields:
            return cls(dict(fields))
        return cls({id_: attempt for id_, attempt in fields.items() if id_ != OTHERS}, fields[OTHERS])

    def to_json(self) -> dict[str, int]:
        """The attempts in the status' form: no `others` where that is 0."""
        return {**({OTHERS: self.others} if self.others else {}), **self.exceptions}

    def of(self, task_id: str) -> int:
        """The attempt of one task."""
        return self.exceptions.get(task_id, self.others)

    def bumped(self, bumped: Iterable[str], everyone: Iterable[str]) -> Attempts:
        """With the next attempt for the tasks `bumped`. `everyone` are the ids of all tasks, those among them."""
        exceptions = dict(self.exceptions)
        for id_ in bumped:
            exceptions[id_] = self.of(id_) + 1
        if len(exceptions) <= PLAIN_UP_TO:
            return Attempts(exceptions, self.others)
        whole = {id_: exceptions.get(id_, self.others) for id_ in everyone}
        most = Counter(whole.values()).most_common(1)[0][0]
        return Attempts({id_: attempt for id_, attempt in whole.items() if attempt != most}, most)
