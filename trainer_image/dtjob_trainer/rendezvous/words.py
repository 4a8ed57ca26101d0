# SPDX-License-Identifier: Apache-2.0
"""Texts about several tasks, for messages of the rendezvous."""

from collections.abc import Mapping, Sequence

NAMES_IN_A_MESSAGE = 3
"""How many tasks a message names. It counts the rest."""


def name_some(names: Sequence[str], count: int | None = None) -> str:
    """`a, b, c and 4 more`: the first names, and how many more there are of `count` (None: of `names`)."""
    rest = (len(names) if count is None else count) - NAMES_IN_A_MESSAGE
    return ", ".join(names[:NAMES_IN_A_MESSAGE]) + (f" and {rest} more" if rest > 0 else "")


def is_ps(task: str) -> bool:
    """Whether this is a ps. Training ends with it, because its variables are lost."""
    return task.startswith("ps-")


def cause_of(lost: Sequence[str], preempted: Sequence[str], crashed: Mapping[str, str] | None = None) -> str:
    """Why a generation ended, such as `worker-1 was lost`. `crashed`: task to the signal that ended its process."""
    gone = [task for task in lost if task not in preempted]
    killed: dict[str, list[str]] = {}
    for task, signal in (crashed or {}).items():
        if task not in lost:
            killed.setdefault(f"killed ({signal})", []).append(task)
    parts = [(names, how) for names, how in ((preempted, "told to end"), (gone, "lost")) if names]
    parts += [(names, how) for how, names in killed.items()]
    return ", ".join(f"{name_some(names)} {'was' if len(names) == 1 else 'were'} {how}" for names, how in parts)
