# SPDX-License-Identifier: Apache-2.0
"""Whether what a process holds grows over a long run."""

from collections.abc import Iterable, Mapping, Sequence

ROOM, SLACK = 1.1, 20
"""What may be held in the last third of a run: `ROOM` times what was held in the third before, and `SLACK` more."""


def grown(rows: Sequence[Mapping[str, float]], names: Iterable[str], slack: float = SLACK) -> list[str]:
    """Which of these columns grew, in words: the most of the last third against the most of the third before. Fewer
    than three rows show nothing."""
    third, found = len(rows) // 3, []
    for name in names if third else ():
        before, after = (max(row[name] for row in part) for part in (rows[-2 * third : -third], rows[-third:]))
        if after > ROOM * before + slack:
            found.append(f"{name} grew from {before:.0f} to {after:.0f}")
    return found
