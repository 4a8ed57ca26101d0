"""Tasks that have done their part, as `status.finished` remembers them when their pods are gone.

By role and attempt, with the indexes written as batch/v1 writes a Job's completedIndexes (`0-3,7`): thousands of
workers may finish at once. The attempt belongs to it: a task that is started anew has yet to finish.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Finished = Mapping[str, int]
"""Task id to the attempt that ended well."""


def from_json(entries: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The tasks that `status.finished` names. Entries of another form, as a newer operator might write, name none."""
    found: dict[str, int] = {}
    for entry in entries:
        with contextlib.suppress(KeyError, TypeError, ValueError):
            attempt, indexes = int(entry["attempt"]), list(_indexes(str(entry["indexes"])))
            found |= {f"{entry['role']}-{index}": attempt for index in indexes}
    return found


def to_json(finished: Finished) -> list[dict[str, Any]]:
    """The tasks in the status' form, sorted; empty for none."""
    groups: dict[tuple[str, int], list[int]] = {}
    for id_, attempt in finished.items():
        role, _, index = id_.rpartition("-")
        groups.setdefault((role, attempt), []).append(int(index))
    return [
        {"role": role, "attempt": attempt, "indexes": _ranges(indexes)}
        for (role, attempt), indexes in sorted(groups.items())
    ]


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
